import { useEffect, useRef } from 'react'

/** Keys and what they do, for as long as the component is there. Not while text is being typed. */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const current = useRef(keys)
  useEffect(() => {
    current.current = keys
  })
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('dialog[open]') !== null) return
      const action = current.current[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches('select, textarea, input:not([type="checkbox"], [type="radio"])'))
  )
}

/** Moves among the items of a page (`data-item`), wherever the focus is. */
export function focusItem(direction: 1 | -1): void {
  const items = [...document.querySelectorAll<HTMLElement>('main [data-item]')].toSorted(
    (a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top,
  )
  const at = items.findIndex((item) => item.contains(document.activeElement))
  const seen = items.findIndex((item) => item.getBoundingClientRect().top >= 48)
  const next = at === -1 ? Math.max(seen, 0) : at + direction
  const item = items[Math.min(Math.max(next, 0), items.length - 1)]
  item?.focus({ preventScroll: true })
  item?.scrollIntoView({ block: 'center' })
}

export function focusSearch(): void {
  document.querySelector<HTMLElement>('main [data-search]')?.focus()
}
