import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

// Vite replaces its defaults with what is given here, so they are spread in.
const conditions = ['@tiltyard/source', ...defaultServerConditions]

// For hangs only: no test fails because a machine is slow, or busy.
const patience = (minutes: number) => ({
  testTimeout: minutes * 60_000,
  hookTimeout: minutes * 60_000,
  expect: { poll: { timeout: 60_000 } },
})

export default defineConfig({
  test: {
    // Vitest would leave a core to itself, which on two cores is half of them.
    maxWorkers: '100%',
    reporters: ['default', './test/support/skipped-reporter.ts'],
    projects: [
      {
        resolve: { conditions },
        ssr: { resolve: { conditions } },
        test: {
          name: 'unit',
          include: ['{packages,apps}/*/test/**/*.test.ts'],
          ...patience(5),
        },
      },
      // No source condition: these tests see what users get, so they need a build.
      {
        test: {
          name: 'e2e',
          include: ['test/src/**/*.test.ts'],
          globalSetup: 'test/support/pack.ts',
          ...patience(15),
        },
      },
    ],
    coverage: { include: ['{packages,apps}/*/src/**'], reporter: ['text-summary', 'json-summary'] },
  },
})
