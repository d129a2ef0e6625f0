import { type JsonValue, StateError } from '@tiltyard/core'

import {
  type Edits,
  type Members,
  memberOf,
  hasMember,
  overlayKeys,
  overlayObject,
  overlayOf,
  removed,
} from './overlay.ts'
import { checkScalar } from './scalar.ts'

type MutableJson = string | number | boolean | null | MutableJson[] | { [key: string]: MutableJson }

/** What a change is written into: the same shape, without `readonly`. */
export type Draft<T> = JsonValue extends T
  ? MutableJson
  : T extends object
    ? { -readonly [Key in keyof T]: Draft<T[Key]> }
    : T

/** One object or list of a state that a change may write to. Nothing is copied before it is written to. */
interface Node {
  readonly source: Members
  readonly parent: Node | undefined
  readonly session: Session
  readonly isWide: boolean
  readonly proxy: object
  /** Members with their changes: of wide objects the edits alone, of others a copy; undefined until something is written. */
  edits: Map<string, unknown> | undefined
  copy: Record<string, unknown> | undefined
  /** Nodes of members that were asked for and still stand where they stood. */
  children: Map<string, Node> | undefined
  isChanged: boolean
  /** What became of it; `settling` while that is being found out. */
  settled: (JsonValue & object) | 'settling' | undefined
}

const nodeKey: unique symbol = Symbol('node')

/** One change. */
interface Session {
  readonly wide: WeakSet<object>
  isOver: boolean
}

/**
 * The state after a change, and what the change returned. The state given is untouched, and all that was not written to is
 * shared. The new state is frozen.
 * @param wide Objects with so many members that a change is laid over them instead of copying them.
 * @throws what `change` throws, and TypeError for values that JSON has no place for.
 */
export function changed<Result>(
  state: JsonValue & object,
  wide: WeakSet<object>,
  change: (draft: object) => Result,
): { readonly state: JsonValue & object; readonly result: Result } {
  const session: Session = { wide, isOver: false }
  const root = createNode(state as Members, undefined, session)
  try {
    const result = change(root.proxy)
    const node = nodeOf(result)
    const settled = settleNode(root)
    return {
      state: settled,
      result: node === undefined ? result : (settleNode(node) as Result),
    }
  } finally {
    session.isOver = true
  }
}

function createNode(source: Members, parent: Node | undefined, session: Session): Node {
  const overlay = overlayOf(source)
  const shell: Shell = Array.isArray(source) ? [] : {}
  const node: Node = {
    source,
    parent,
    session,
    isWide: overlay !== undefined || session.wide.has(source),
    proxy: new Proxy(shell, handler),
    edits: undefined,
    copy: undefined,
    children: undefined,
    isChanged: false,
    settled: undefined,
  }
  shell[nodeKey] = node
  return node
}

/** What a proxy stands on: an empty object or list, so that it is taken for one, with its node. */
type Shell = object & { [nodeKey]?: Node }

/** One for all proxies: a change opens many, and closures of their own would be most of their cost. */
const handler: ProxyHandler<Shell> = {
  get: (shell, key) => {
    const node = shell[nodeKey]!
    if (key === nodeKey) return node
    checkOpen(node)
    if (typeof key === 'symbol' || !has(node, key)) return Reflect.get(shell, key)
    return readMember(node, key)
  },
  has: (shell, key) =>
    typeof key === 'string' && (has(shell[nodeKey]!, key) || Reflect.has(shell, key)),
  ownKeys: (shell) => {
    const node = shell[nodeKey]!
    checkOpen(node)
    return Array.isArray(shell) ? Reflect.ownKeys(current(node)) : keys(node)
  },
  getOwnPropertyDescriptor: (shell, key) => {
    const node = shell[nodeKey]!
    if (typeof key === 'symbol' || !has(node, key)) return undefined
    const isLength = Array.isArray(shell) && key === 'length'
    const value: unknown = Reflect.get(node.proxy, key)
    return { value, writable: true, enumerable: !isLength, configurable: !isLength }
  },
  set: (shell, key, value) => {
    const node = shell[nodeKey]!
    checkOpen(node)
    return typeof key === 'string' && write(node, key, value)
  },
  defineProperty: (shell, key, { value }) =>
    typeof key === 'string' && write(shell[nodeKey]!, key, value),
  deleteProperty: (shell, key) => {
    const node = shell[nodeKey]!
    checkOpen(node)
    return typeof key === 'string' && write(node, key, removed)
  },
}

function checkOpen({ session }: Node): void {
  if (session.isOver) throw new StateError('a draft was used after its update had ended')
}

function nodeOf(value: unknown): Node | undefined {
  return typeof value === 'object' && value !== null
    ? (value as { readonly [nodeKey]?: Node })[nodeKey]
    : undefined
}

/** Of objects that are no overlay and lists: their members now. */
function current(node: Node): object {
  return node.copy ?? node.source
}

function overlaid(node: Node): { readonly base: Members; readonly edits: Edits } {
  const overlay = overlayOf(node.source)
  const base = overlay?.base ?? node.source
  return { base, edits: (node.edits ?? overlay?.edits ?? new Map()) as Edits }
}

function has(node: Node, key: string): boolean {
  return node.isWide ? hasMember(overlaid(node), key) : Object.hasOwn(current(node), key)
}

function keys(node: Node): string[] {
  return node.isWide ? overlayKeys(overlaid(node)) : Object.keys(current(node))
}

function readMember(node: Node, key: string): unknown {
  const child = node.children?.get(key)
  if (child !== undefined) return child.proxy
  const value: unknown = node.isWide
    ? memberOf(overlaid(node), key)
    : Reflect.get(current(node), key)
  // What the change itself put in is not copied: it is the change's own until it ends.
  if (!isSettled(value, node.session)) return value
  const opened = createNode(value as Members, node, node.session)
  node.children ??= new Map()
  node.children.set(key, opened)
  return opened.proxy
}

/** Whether a value is an object of the state as it was: frozen, or an overlay. */
function isSettled(value: unknown, { wide }: Session): value is object {
  if (typeof value !== 'object' || value === null) return false
  // Whether a table is frozen, V8 finds out entry by entry.
  if (wide.has(value)) return true
  if (nodeOf(value) !== undefined) return false
  return overlayOf(value) !== undefined || Object.isFrozen(value)
}

function write(node: Node, key: string, value: unknown): boolean {
  const isGone = value === removed || (value === undefined && !Array.isArray(node.source))
  if (!isGone) checkScalar(value)
  node.children?.delete(key)
  if (node.isWide) {
    node.edits ??= new Map(overlaid(node).edits)
    node.edits.set(key, isGone ? removed : value)
  } else {
    const source: object = node.source
    node.copy ??= (Array.isArray(source) ? [...source] : { ...source }) as Record<string, unknown>
    if (isGone) delete node.copy[key]
    else if (key === '__proto__') ownMember(node.copy, key, value)
    else node.copy[key] = value
  }
  for (let at: Node | undefined = node; at !== undefined && !at.isChanged; at = at.parent)
    at.isChanged = true
  return true
}

/** A key of JSON, where plain assignment would set the prototype. */
function ownMember(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  })
}

function settleNode(node: Node): JsonValue & object {
  if (!node.isChanged) return node.source
  if (node.settled === 'settling') throw new TypeError('a universe holds JSON, which has no cycles')
  if (node.settled === undefined) {
    node.settled = 'settling'
    node.settled = node.isWide ? settleWide(node) : settleCopy(node)
  }
  return node.settled
}

function settleWide(node: Node): Members {
  const { base, edits } = overlaid(node)
  const settled = new Map<string, JsonValue | typeof removed>()
  for (const [key, value] of edits) {
    const final = value === removed ? removed : settle(value, node.session)
    const wasThere = Object.hasOwn(base, key)
    if (final === removed ? wasThere : !wasThere || base[key] !== final) settled.set(key, final)
  }
  for (const [key, child] of node.children ?? [])
    if (child.isChanged) settled.set(key, settleNode(child))
  return settled.size === 0 ? base : overlayObject(base, settled)
}

function settleCopy(node: Node): JsonValue & object {
  const source: object = node.source
  const copy =
    node.copy ?? ((Array.isArray(source) ? [...source] : { ...source }) as Record<string, unknown>)
  for (const [key, child] of node.children ?? []) if (child.isChanged) copy[key] = settleNode(child)
  return settle(copy, node.session) as JsonValue & object
}

/** A value as a state keeps it: drafts replaced by what became of them, what is new checked and frozen. */
function settle(value: unknown, session: Session): JsonValue {
  checkScalar(value)
  if (typeof value !== 'object' || value === null) return value as JsonValue
  const node = nodeOf(value)
  if (node !== undefined) return settleNode(node)
  if (isSettled(value, session)) return value as JsonValue
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    if (member === undefined && !Array.isArray(value)) delete members[key]
    else if (typeof member === 'object' && member !== null) {
      const settled = settle(member, session)
      if (settled !== member) members[key] = settled
    } else checkScalar(member)
  }
  return Object.freeze(value) as JsonValue
}
