import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'

import { rawAddress, rawOptions, type EpisodeAddress } from '../../api.ts'
import { formatNumber } from '../../format.ts'
import { Answer } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'
import { Rows } from '../../ui/virtual.tsx'

/** Characters of a line that are shown; the file has them all. */
const LINE_CHARS = 2_000

/** The record as it is, as JSON. */
export function RawView({ at }: { readonly at: EpisodeAddress }) {
  const query = useQuery(rawOptions(at))
  return (
    <Answer query={query} what="the record">
      {(text) => <RawLines at={at} text={text} />}
    </Answer>
  )
}

function RawLines({ at, text }: { readonly at: EpisodeAddress; readonly text: string }) {
  const lines = useMemo(() => text.split('\n'), [text])
  const [isCopied, setIsCopied] = useState(false)
  return (
    <section className="stack" aria-label="Raw record">
      <div className="bar">
        <button
          type="button"
          onClick={() => {
            void navigator.clipboard.writeText(text).then(() => setIsCopied(true))
          }}
        >
          {isCopied ? 'Copied' : 'Copy'}
        </button>
        <a
          className="button"
          href={rawAddress(at)}
          download={`${at.run}-${at.id.replaceAll('/', '-')}.json`}
        >
          Save as a file
        </a>
        <span className="inline muted small">
          {formatNumber(lines.length)} lines, {formatNumber(text.length)} characters
        </span>
      </div>
      <div className="panel">
        <Rows
          label="Lines"
          count={lines.length}
          estimate={() => 20}
          row={(index) => (
            <div className="raw-line">
              <Text text={shortened(lines[index]!)} />
            </div>
          )}
        />
      </div>
    </section>
  )
}

function shortened(line: string): string {
  return line.length <= LINE_CHARS
    ? line
    : `${line.slice(0, LINE_CHARS)}… ${formatNumber(line.length)} characters`
}
