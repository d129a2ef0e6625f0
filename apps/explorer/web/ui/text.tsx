import { Fragment, memo } from 'react'

/**
 * Characters that change or hide others: controls, marks of direction, invisible separators. Joiners stay, since scripts and
 * emoji need them.
 */
const hidden =
  // oxlint-disable-next-line no-control-regex -- those are what is looked for
  /([\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}])/u

/** Recorded text, as text: nothing in it is markup, and what would not be seen is named. */
export const Text = memo(function Text({ text }: { readonly text: string }) {
  if (!hidden.test(text)) return <>{text}</>
  return (
    <>
      {text.split(hidden).map((piece, index) =>
        index % 2 === 0 ? (
          <Fragment key={index}>{piece}</Fragment>
        ) : (
          <span key={index} className="control">
            {`U+${piece.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`}
          </span>
        ),
      )}
    </>
  )
})
