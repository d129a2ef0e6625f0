import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router'

import { EpisodePage } from './pages/episode/episode-page.tsx'
import { EpisodesPage } from './pages/run/episodes-page.tsx'
import { OverviewPage } from './pages/run/overview-page.tsx'
import { RunLayout } from './pages/run/run-layout.tsx'
import { SetupPage } from './pages/run/setup-page.tsx'
import { StepsPage } from './pages/run/steps-page.tsx'
import { UntrainedPage } from './pages/run/untrained-page.tsx'
import { RunsPage } from './pages/runs-page.tsx'
import { StepPage } from './pages/step-page.tsx'
import { TaskPage } from './pages/task-page.tsx'
import { fromSegment, given, number, oneOf, text, texts, toSegment, type Search } from './search.ts'
import { NotThere, Shell } from './ui/shell.tsx'
import { Failed } from './ui/state.tsx'

const splits = ['train', 'eval'] as const

const root = createRootRoute({ component: Shell, notFoundComponent: NotThere })

const runs = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: RunsPage,
  validateSearch: (search: Search) =>
    given({ q: text(search, 'q'), runs: texts(search, 'runs'), metric: text(search, 'metric') }),
})

const runParams = {
  parse: ({ run }: { run: string }) => ({ run: fromSegment(run) }),
  stringify: ({ run }: { run: string }) => ({ run: toSegment(run) }),
}

const run = createRoute({
  getParentRoute: () => root,
  path: '/runs/$run',
  component: RunLayout,
  params: runParams,
})

const overview = createRoute({
  getParentRoute: () => run,
  path: '/',
  component: OverviewPage,
  validateSearch: (search: Search) => given({ plot: texts(search, 'plot'), q: text(search, 'q') }),
})

const steps = createRoute({ getParentRoute: () => run, path: '/steps', component: StepsPage })

const filters = (search: Search) =>
  given({
    task: text(search, 'task'),
    end: text(search, 'end'),
    min: number(search, 'min'),
    max: number(search, 'max'),
  })

const episodes = createRoute({
  getParentRoute: () => run,
  path: '/episodes',
  component: EpisodesPage,
  validateSearch: (search: Search) => ({
    ...filters(search),
    ...given({ split: oneOf(search, 'split', splits), step: number(search, 'step') }),
  }),
})

const untrained = createRoute({
  getParentRoute: () => run,
  path: '/untrained',
  component: UntrainedPage,
  validateSearch: (search: Search) =>
    given({ list: oneOf(search, 'list', ['failed', 'unfinished', 'cancelled'] as const) }),
})

const setup = createRoute({ getParentRoute: () => run, path: '/setup', component: SetupPage })

const task = createRoute({
  getParentRoute: () => root,
  path: '/runs/$run/task',
  component: TaskPage,
  params: runParams,
  validateSearch: (search: Search) =>
    given({ task: text(search, 'task'), left: text(search, 'left'), right: text(search, 'right') }),
})

const step = createRoute({
  getParentRoute: () => root,
  path: '/runs/$run/$split/$step',
  component: StepPage,
  params: {
    parse: ({ run: name, split, step: digits }) => ({
      run: fromSegment(name),
      split: split === 'eval' ? ('eval' as const) : ('train' as const),
      step: Number(digits),
    }),
    stringify: ({ run: name, split, step: place }) => ({
      run: toSegment(name),
      split,
      step: String(place),
    }),
  },
  validateSearch: (search: Search) => ({
    ...filters(search),
    ...given({ evaluation: text(search, 'evaluation'), trained: text(search, 'trained') }),
  }),
})

const episodeViews = ['conversation', 'timeline', 'tokens', 'raw'] as const

const episode = createRoute({
  getParentRoute: () => root,
  path: '/runs/$run/episode/$',
  component: EpisodePage,
  params: {
    parse: ({ run: name, _splat }) => ({ run: fromSegment(name), _splat }),
    stringify: ({ run: name, _splat }) => ({ run: toSegment(name), _splat }),
  },
  validateSearch: (search: Search) =>
    given({
      view: oneOf(search, 'view', episodeViews),
      message: number(search, 'message'),
      color: oneOf(search, 'color', ['probability', 'advantage', 'mask'] as const),
      find: text(search, 'find'),
    }),
})

export const router = createRouter({
  routeTree: root.addChildren([
    runs,
    run.addChildren([overview, steps, episodes, untrained, setup]),
    task,
    step,
    episode,
  ]),
  scrollRestoration: true,
  defaultPreload: false,
  defaultErrorComponent: ({ error }) => <Failed error={error} />,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
