import { Link, Outlet, useRouter, useRouterState } from '@tanstack/react-router'
import { useRef, useState } from 'react'

import { chooseTheme, chosenTheme, type Theme } from '../theme.ts'
import { focusItem, focusSearch, useKeys } from './keys.ts'
import { Text } from './text.tsx'

const helpKeys = [
  ['/', 'to the search or filter of the page'],
  ['j  k', 'next and previous row, episode or message'],
  ['Enter', 'open it'],
  ['[  ]', 'previous and next step, or episode of the group'],
  ['u', 'one level up'],
  ['t', 'tokens of an episode’s replies on or off'],
  ['?', 'this list'],
] as const

/** What is around every page. */
export function Shell() {
  const help = useRef<HTMLDialogElement>(null)
  const up = useUp()
  useKeys({
    '/': focusSearch,
    j: () => focusItem(1),
    k: () => focusItem(-1),
    u: up,
    '?': () => help.current?.showModal(),
  })
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <Link to="/" className="brand" aria-label="Tiltyard: all runs">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <circle cx="16" cy="16" r="13" fill="none" stroke="var(--accent)" strokeWidth="3.5" />
            <circle cx="16" cy="16" r="5" fill="var(--accent)" />
          </svg>
          <span>Tiltyard</span>
        </Link>
        <Crumbs />
        <div className="tools">
          <button
            type="button"
            onClick={() => help.current?.showModal()}
            aria-label="Keyboard"
            className="only-wide"
          >
            ?
          </button>
          <ThemeSwitch />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Outlet />
      </main>
      <dialog ref={help} aria-labelledby="help-title">
        <h2 id="help-title">Keyboard</h2>
        <dl className="keys">
          {helpKeys.map(([key, does]) => (
            <div key={key} style={{ display: 'contents' }}>
              <dt>
                {key.split('  ').map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <button type="button" onClick={() => help.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  )
}

const themes: readonly Theme[] = ['system', 'light', 'dark']

function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme)
  const next = themes[(themes.indexOf(theme) + 1) % themes.length]!
  return (
    <button
      type="button"
      onClick={() => {
        chooseTheme(next)
        setTheme(next)
      }}
      aria-label={`Colours: ${theme}. Change to ${next}`}
      title={`Colours: ${theme}`}
    >
      {{ system: '◐', light: '☀', dark: '☾' }[theme]}
    </button>
  )
}

interface Crumb {
  readonly text: string
  readonly href?: string
}

function Crumbs() {
  const crumbs = useCrumbs()
  return (
    <nav className="crumbs" aria-label="Where you are">
      <ol>
        {crumbs.map(({ text, href }, index) => (
          <li key={index}>
            {href === undefined ? (
              <span aria-current="page">
                <Text text={text} />
              </span>
            ) : (
              <Link to={href}>
                <Text text={text} />
              </Link>
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

/** From the whole to the part, without the list of runs. The last is the page itself. */
function useCrumbs(): readonly Crumb[] {
  const router = useRouter()
  const matches = useRouterState({ select: (state) => state.matches })
  const last = matches.at(-1)
  if (last === undefined || !('run' in last.params)) return []
  const { run } = last.params
  const runCrumb = {
    text: run,
    href: router.buildLocation({ to: '/runs/$run', params: { run } }).href,
  }
  if (last.routeId === '/runs/$run/$split/$step') {
    const { split, step } = last.params
    const { evaluation } = last.search
    return [runCrumb, { text: `${evaluation ?? split} step ${step}` }]
  }
  if (last.routeId === '/runs/$run/episode/$') {
    const { _splat: id = '' } = last.params
    const [, split, evaluation, step, rest] =
      /^(train|eval)(?:\/(.+))?\/step-(\d+)\/(g.+)$/.exec(id) ?? []
    if (split === undefined || step === undefined || rest === undefined) return [runCrumb]
    const { href } = router.buildLocation({
      to: '/runs/$run/$split/$step',
      params: { run, split: split === 'eval' ? 'eval' : 'train', step: Number(step) },
      search: evaluation === undefined ? {} : { evaluation },
    })
    return [
      runCrumb,
      { text: `${evaluation ?? split} step ${Number(step)}`, href },
      { text: rest.replaceAll('/', ' ') },
    ]
  }
  if (last.routeId === '/runs/$run/task') return [runCrumb, { text: last.search.task ?? 'task' }]
  return [{ text: run }]
}

function useUp(): () => void {
  const router = useRouter()
  const crumbs = useCrumbs()
  return () => {
    const parent = crumbs.at(-2)?.href ?? '/'
    void router.navigate({ to: parent })
  }
}

export function NotThere() {
  return (
    <p className="state">
      There is no such page. <Link to="/">All runs</Link>
    </p>
  )
}
