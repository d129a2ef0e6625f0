import { ToolError } from '@tiltyard/bundle'

import { pythonFloat, roundCents } from './python-text.ts'

/** Longest expression that is worked out, in characters. */
const MAX_EXPRESSION_CHARS = 1_000
/** Deepest nesting of parentheses and signs. */
const MAX_DEPTH = 100
/** Largest integer, in bits: a chain of powers would fill the memory. */
const MAX_INTEGER_BITS = 4_096

/** As in Python, whole numbers are exact until a division or a fraction makes floats of them. */
type Numeric = bigint | number

/**
 * What the benchmark's calculator gives: the value of a Python expression of numbers, `+ - * / // **` and parentheses, as a
 * float rounded to 2 digits. It is parsed here; nothing is evaluated as code.
 * @throws ToolError with the benchmark's words where they don't depend on how Python reads a broken expression.
 */
export function calculate(expression: string): string {
  if (!/^[\d+\-*/(). ]*$/.test(expression)) throw new ToolError('Invalid characters in expression')
  if (expression.length > MAX_EXPRESSION_CHARS)
    throw new ToolError(`the expression is longer than ${MAX_EXPRESSION_CHARS} characters`)
  const value = evaluate(expression.trim())
  const float = Number(value)
  if (!Number.isFinite(float)) throw new ToolError('int too large to convert to float')
  return pythonFloat(roundCents(float))
}

function evaluate(text: string): Numeric {
  if (text === '') throw new ToolError('invalid syntax (<string>, line 0)')
  const tokens = text.match(/\d+\.?\d*|\.\d+|\*\*|\/\/|[-+*/().]/g) ?? []
  checkParentheses(tokens)
  let at = 0
  let depth = 0
  const take = (...wanted: readonly string[]) => {
    const token = tokens[at]
    if (token === undefined || !wanted.includes(token)) return undefined
    at += 1
    return token
  }
  const binary = (operand: () => Numeric, ...operators: readonly string[]): Numeric => {
    let left = operand()
    for (let sign = take(...operators); sign !== undefined; sign = take(...operators))
      left = apply(sign, left, operand())
    return left
  }
  const sum = (): Numeric => binary(product, '+', '-')
  const product = (): Numeric => binary(signed, '*', '/', '//')
  const signed = (): Numeric => {
    const sign = take('+', '-')
    if (sign === undefined) return power()
    return nested(() => (sign === '-' ? -signed() : signed()))
  }
  // A power binds tighter than a sign before it, and takes the sign after it: -2**-1 is -(2**(-1)).
  const power = (): Numeric => {
    const base = atom()
    return take('**') === undefined ? base : nested(() => apply('**', base, signed()))
  }
  const atom = (): Numeric => {
    const token = tokens[at]
    if (token === undefined) throw syntaxError()
    at += 1
    if (token === '(') {
      if (take(')') !== undefined)
        throw new ToolError("float() argument must be a string or a real number, not 'tuple'")
      const value = nested(sum)
      if (take(')') === undefined) throw syntaxError()
      return value
    }
    return readNumber(token)
  }
  const nested = (inner: () => Numeric): Numeric => {
    depth += 1
    if (depth > MAX_DEPTH) throw new ToolError('too many nested parentheses')
    const value = inner()
    depth -= 1
    return value
  }
  const value = sum()
  if (at < tokens.length) {
    if (tokens[at] === '(') throw new ToolError("'int' object is not callable")
    throw syntaxError()
  }
  return value
}

function syntaxError(): ToolError {
  return new ToolError('invalid syntax (<string>, line 1)')
}

function checkParentheses(tokens: readonly string[]): void {
  let open = 0
  for (const token of tokens) {
    if (token === '(') open += 1
    if (token === ')') open -= 1
    if (open < 0) throw new ToolError("unmatched ')' (<string>, line 1)")
  }
  if (open > 0) throw new ToolError("'(' was never closed (<string>, line 1)")
}

function readNumber(token: string): Numeric {
  if (/^\d+$/.test(token)) {
    if (/^0+[1-9]/.test(token))
      throw new ToolError(
        'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers (<string>, line 1)',
      )
    return limited(BigInt(token))
  }
  if (/\d/.test(token)) return Number(token)
  throw syntaxError()
}

function apply(sign: string, left: Numeric, right: Numeric): Numeric {
  if (typeof left === 'bigint' && typeof right === 'bigint') return applyExact(sign, left, right)
  return applyFloat(sign, Number(left), Number(right))
}

function applyExact(sign: string, left: bigint, right: bigint): Numeric {
  if (sign === '+') return limited(left + right)
  if (sign === '-') return limited(left - right)
  if (sign === '*') return limited(left * right)
  if (sign === '**' && right >= 0n) {
    if (bits(left) * Number(right) > MAX_INTEGER_BITS) throw tooLarge()
    return left ** right
  }
  if (sign !== '//') return applyFloat(sign, Number(left), Number(right))
  if (right === 0n) throw new ToolError('integer division or modulo by zero')
  const quotient = left / right
  const isRoundedUp = left % right !== 0n && left < 0n !== right < 0n
  return isRoundedUp ? quotient - 1n : quotient
}

function applyFloat(sign: string, left: number, right: number): number {
  if (sign === '+') return left + right
  if (sign === '-') return left - right
  if (sign === '*') return left * right
  if (sign === '**') {
    if (left === 0 && right < 0) throw new ToolError('0.0 cannot be raised to a negative power')
    const value = left ** right
    // Python gives a complex number here, which its `float` refuses.
    if (Number.isNaN(value))
      throw new ToolError("float() argument must be a string or a real number, not 'complex'")
    return value
  }
  if (right === 0)
    throw new ToolError(sign === '/' ? 'division by zero' : 'float floor division by zero')
  return sign === '/' ? left / right : Math.floor(left / right)
}

function limited(value: bigint): bigint {
  if (bits(value) > MAX_INTEGER_BITS) throw tooLarge()
  return value
}

function bits(value: bigint): number {
  return (value < 0n ? -value : value).toString(16).length * 4
}

function tooLarge(): ToolError {
  return new ToolError(`a number of the expression takes more than ${MAX_INTEGER_BITS} bits`)
}
