import { useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'

import { testCaseOptions, type EpisodeAddress } from '../../api.ts'
import { Answer } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'

/** The play as code that repeats it against the bundle and expects its scores. */
export function TestCase({ at }: { readonly at: EpisodeAddress }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        onClick={() => {
          setIsOpen(true)
          dialog.current?.showModal()
        }}
      >
        As a test case
      </button>
      <dialog ref={dialog} aria-labelledby="test-case-title" onClose={() => setIsOpen(false)}>
        <h2 id="test-case-title">This play as a test case</h2>
        {isOpen ? <Code at={at} onClose={() => dialog.current?.close()} /> : null}
      </dialog>
    </>
  )
}

function Code({ at, onClose }: { readonly at: EpisodeAddress; readonly onClose: () => void }) {
  const query = useQuery(testCaseOptions(at))
  const [isCopied, setIsCopied] = useState(false)
  return (
    <Answer query={query} what="the play">
      {({ code }) => (
        <div className="stack">
          <p className="small muted">
            With <code>expectScore</code> and <code>loadBundle</code> of{' '}
            <code>@tiltyard/bundle</code>: the same replies, and the same scores or an error that
            shows both.
          </p>
          <pre className="json panel" tabIndex={0} aria-label="Code">
            <Text text={code} />
          </pre>
          <div className="bar">
            <button
              type="button"
              onClick={() => {
                void navigator.clipboard.writeText(code).then(() => setIsCopied(true))
              }}
            >
              {isCopied ? 'Copied' : 'Copy'}
            </button>
            <button type="button" onClick={onClose}>
              Close
            </button>
          </div>
        </div>
      )}
    </Answer>
  )
}
