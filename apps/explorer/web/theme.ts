import { useSyncExternalStore } from 'react'

export type Theme = 'light' | 'dark' | 'system'

const KEY = 'tiltyard.theme'
const listeners = new Set<() => void>()
const dark = matchMedia('(prefers-color-scheme: dark)')

/** What the reader chose; the system's own until then. */
export function chosenTheme(): Theme {
  const { theme } = document.documentElement.dataset
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  localStorage.setItem(KEY, theme)
  for (const listener of listeners) listener()
}

export function restoreTheme(): void {
  const kept = localStorage.getItem(KEY)
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset['theme'] = kept
  dark.addEventListener('change', () => {
    for (const listener of listeners) listener()
  })
}

/** Which of the two is to be seen now: canvases don't follow style sheets. */
export function useShownTheme(): 'light' | 'dark' {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => {
      const theme = chosenTheme()
      if (theme !== 'system') return theme
      return dark.matches ? 'dark' : 'light'
    },
  )
}
