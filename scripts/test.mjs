// `npm test`: from a fresh clone to the tests' results. What follows `--` goes to vitest.
import { withRecentNode } from './node-version.mjs'

withRecentNode(function () {
  return import('./setup.mjs').then(function (setup) {
    setup.prepare({ build: ['types'] })
    return setup.become('node_modules/vitest/vitest.mjs', ['run'])
  })
})
