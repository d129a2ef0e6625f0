/**
 * Where things stand in a JSON text: for messages about what a person wrote, which `JSON.parse` can't give.
 */

/** Line (from 1) of the first character that breaks the JSON, or undefined when the text is JSON. */
export function brokenLine(text: string): number | undefined {
  try {
    walk(text, () => {})
    return undefined
  } catch (error) {
    if (error instanceof Broken) return lineAt(text, error.position)
    throw error
  }
}

/** Line (from 1) of the value at a path of keys and indices, or of the nearest parent that exists. */
export function lineOf(text: string, path: readonly PropertyKey[]): number {
  const wanted = path.map(String)
  let best = { depth: -1, position: 0 }
  walk(text, (found, position) => {
    const depth = found.length
    if (depth > best.depth && depth <= wanted.length && found.every((key, i) => key === wanted[i]))
      best = { depth, position }
  })
  return lineAt(text, best.position)
}

class Broken extends Error {
  readonly position: number
  constructor(position: number) {
    super('broken JSON')
    this.position = position
  }
}

function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

const blank = /[ \t\r\n]*/y
const scalar =
  /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Calls `found` with the path of each member and where it begins: for a member of an object, at its key. */
function walk(text: string, found: (path: readonly string[], position: number) => void): void {
  let at = 0
  const path: string[] = []
  const skip = () => {
    blank.lastIndex = at
    blank.test(text)
    at = blank.lastIndex
  }
  const take = (wanted: string) => {
    skip()
    if (text[at] !== wanted) throw new Broken(at)
    at += 1
  }
  const peek = () => {
    skip()
    return text[at]
  }
  const token = () => {
    skip()
    scalar.lastIndex = at
    const match = scalar.exec(text)
    if (match === null) throw new Broken(at)
    at = scalar.lastIndex
    return match[0]
  }
  const member = (key: string, position: number, read: () => void) => {
    path.push(key)
    found(path, position)
    read()
    path.pop()
  }
  const list = (close: string, item: (index: number) => void) => {
    at += 1
    if (peek() === close) {
      at += 1
      return
    }
    for (let index = 0; ; index += 1) {
      item(index)
      if (peek() !== ',') break
      at += 1
    }
    take(close)
  }
  const value = (): void => {
    const first = peek()
    if (first === '{') {
      list('}', () => {
        if (peek() !== '"') throw new Broken(at)
        const position = at
        const key = JSON.parse(token()) as string
        take(':')
        member(key, position, value)
      })
    } else if (first === '[') {
      list(']', (index) => {
        skip()
        member(String(index), at, value)
      })
    } else {
      token()
    }
  }
  found(path, 0)
  value()
  if (peek() !== undefined) throw new Broken(at)
}
