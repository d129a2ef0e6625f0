import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'

import { askEpisodes, type EpisodesQuery } from '../../api.ts'
import { formatCount } from '../../format.ts'
import { given } from '../../search.ts'
import { EpisodeGrid } from '../../ui/episode-grid.tsx'
import { FilterBar } from '../../ui/filter-bar.tsx'
import { Answer } from '../../ui/state.tsx'
import { useRun } from './run-layout.tsx'

const route = getRouteApi('/runs/$run/episodes')

export function EpisodesPage() {
  const { name: run } = useRun()
  const { split, step, task, end, min, max } = route.useSearch()
  const navigate = route.useNavigate()
  const query = useEpisodes({ run, split, step, task, end, minReward: min, maxReward: max })
  return (
    <>
      <FilterBar
        fields={['split', 'step', 'exact task', 'end', 'reward']}
        value={{ split, step, task, end, min, max }}
        onChange={(change) =>
          void navigate({
            replace: true,
            resetScroll: false,
            search: (search) => given({ ...search, ...change }),
          })
        }
      />
      <EpisodeList run={run} query={query} />
    </>
  )
}

export function useEpisodes(query: EpisodesQuery) {
  return useInfiniteQuery({
    queryKey: ['episodes', query],
    queryFn: ({ pageParam, signal }) =>
      askEpisodes(
        { ...query, limit: 200, ...(pageParam === '' ? {} : { after: pageParam }) },
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  })
}

function EpisodeList({
  run,
  query,
}: {
  readonly run: string
  readonly query: ReturnType<typeof useEpisodes>
}) {
  return (
    <Answer query={query} what="the episodes">
      {({ pages }) => {
        const episodes = pages.flatMap((page) => page.episodes)
        return (
          <>
            <p className="muted small" role="status">
              {query.hasNextPage
                ? `The first ${episodes.length} episodes`
                : formatCount(episodes.length, 'episode')}
            </p>
            <EpisodeGrid run={run} episodes={episodes} />
            {query.hasNextPage ? (
              <div>
                <button
                  type="button"
                  disabled={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  {query.isFetchingNextPage ? 'Reading…' : 'More'}
                </button>
              </div>
            ) : null}
          </>
        )
      }}
    </Answer>
  )
}
