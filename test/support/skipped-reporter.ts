import type { Reporter, TestModule } from 'vitest/node'

/** Says at the end which tests this machine couldn't run and what it lacks; see `describeWith`. */
// oxlint-disable-next-line import/no-default-export -- vitest loads reporters so
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = new Map<string, number>()
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const need = /\(needs ([^)]+)\)/.exec(test.fullName)?.[1]
        if (need !== undefined) counts.set(need, (counts.get(need) ?? 0) + 1)
      }
    }
    if (counts.size === 0) return
    const parts = [...counts].map(([need, count]) => `${need} (${count})`)
    console.log(`Skipped, because this machine lacks: ${parts.join(', ')}`)
  }
}
