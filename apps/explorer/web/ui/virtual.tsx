import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useLayoutEffect, useRef, useState, type ReactNode, type Ref } from 'react'

export interface RowsHandle {
  scrollTo(index: number): void
}

export interface RowsProps {
  readonly count: number
  /** Height of a row that wasn't seen yet, in pixels. */
  readonly estimate: (index: number) => number
  readonly row: (index: number) => ReactNode
  readonly keyOf?: (index: number) => string | number
  /** What the rows' container and each row are to assistive technology. */
  readonly role?: 'list' | 'rowgroup'
  readonly label?: string
  readonly handle?: Ref<RowsHandle>
}

/** Rows that exist while they are near the window. Their heights are measured as they come. */
export function Rows({ count, estimate, row, keyOf, role = 'list', label, handle }: RowsProps) {
  const container = useRef<HTMLDivElement>(null)
  const [margin, setMargin] = useState(0)
  // What stands above may grow or shrink.
  useLayoutEffect(() => {
    const top = (container.current?.getBoundingClientRect().top ?? 0) + window.scrollY
    if (Math.abs(top - margin) > 1) setMargin(top)
  })
  const virtualizer = useWindowVirtualizer({
    count,
    estimateSize: estimate,
    overscan: 6,
    scrollMargin: margin,
    scrollPaddingStart: 110,
    ...(keyOf === undefined ? {} : { getItemKey: keyOf }),
  })
  const pinned = useRef<number>(undefined)
  // Rows above take their real heights as their texts come: the one that was asked for stays where it is until the reader moves.
  const hold = () => {
    if (pinned.current === undefined) return
    const [top] = virtualizer.getOffsetForIndex(pinned.current, 'start') ?? []
    if (top !== undefined && Math.abs(window.scrollY - top) > 2) window.scrollTo({ top })
  }
  useLayoutEffect(hold)
  useLayoutEffect(() => {
    const letGo = () => (pinned.current = undefined)
    const moves = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const
    for (const move of moves) addEventListener(move, letGo, { passive: true })
    return () => {
      for (const move of moves) removeEventListener(move, letGo)
    }
  }, [])
  useLayoutEffect(() => {
    const value: RowsHandle = {
      scrollTo(index) {
        pinned.current = index
        hold()
      },
    }
    if (typeof handle === 'function') handle(value)
    else if (handle !== undefined && handle !== null) handle.current = value
  })
  return (
    <div
      ref={container}
      className="body"
      role={role}
      aria-label={label}
      style={{ height: virtualizer.getTotalSize() }}
    >
      {virtualizer.getVirtualItems().map(({ key, index, start }) => (
        <div
          key={key}
          ref={virtualizer.measureElement}
          data-index={index}
          className="placed"
          role={role === 'list' ? 'listitem' : 'presentation'}
          style={{ transform: `translateY(${start - margin}px)` }}
        >
          {row(index)}
        </div>
      ))}
    </div>
  )
}
