// `npm start`: from a fresh clone to a policy that learns on this machine. What follows `--` goes to `tiltyard train`.
import { withRecentNode } from './node-version.mjs'

withRecentNode(function () {
  return import('./setup.mjs').then(function (setup) {
    setup.prepare({ build: ['build', '--filter=tiltyard...'] })
    return setup.become('apps/trainer/dist/cli.js', ['train', 'apps/trainer/recipes/desk.ts'])
  })
})
