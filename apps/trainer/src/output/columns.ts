/** Two texts beside each other under their titles, wrapped to the width. */
export function sideBySide(
  left: { readonly title: string; readonly lines: readonly string[] },
  right: { readonly title: string; readonly lines: readonly string[] },
  width: number,
): readonly string[] {
  const column = Math.max(20, Math.floor((width - 3) / 2))
  const wrapped = [left, right].map(({ title, lines }) => [
    title,
    '─'.repeat(column),
    ...lines.flatMap((line) => wrap(line, column)),
  ])
  const rows = Math.max(...wrapped.map(({ length }) => length))
  return Array.from({ length: rows }, (_, row) => {
    const [first, second] = wrapped.map((lines) => lines[row] ?? '')
    return `${first!.padEnd(column)} │ ${second}`.trimEnd()
  })
}

/** Breaks at spaces where it can, inside a word where it must. Never in the middle of a character. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let rest = Array.from(paragraph)
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width)
      const cut = space > 0 ? space : width
      lines.push(rest.slice(0, cut).join(''))
      rest = rest.slice(space > 0 ? cut + 1 : cut)
    }
    lines.push(rest.join(''))
  }
  return lines
}
