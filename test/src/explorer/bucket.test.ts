import type { ChildProcess } from 'node:child_process'

import { s3RunIndex } from '@tiltyard/run-index-s3'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { launchBrowser } from '../../support/browser.ts'
import { describeWith, program } from '../../support/machine.ts'
import { root } from '../../support/workspace.ts'
import { startRadosgw, type Radosgw } from '../run-index-s3/radosgw.ts'
import { visit, WAIT_MS } from './browser.ts'
import { addressOf, explore } from './command.ts'
import { claimRun, episode, longEpisode, writeMadeUp } from './made-up.ts'

declare const window: { readonly attacked?: unknown }

const PREFIX = 'desk runs'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 })

describeWith(program('radosgw'), 'runs in a bucket', () => {
  describeWith(program('chromium'), 'in a browser', (chromium) => {
    let store: Radosgw
    let server: ChildProcess
    let browser: Browser
    let url: string

    const index = () => {
      const { bucket, endpoint, credentials } = store
      return s3RunIndex({ bucket, endpoint, credentials, prefix: PREFIX })
    }

    beforeAll(async () => {
      store = await startRadosgw()
      const { endpoint, bucket, credentials } = store
      await writeMadeUp(index())
      server = explore(root, [`s3://${bucket}/${PREFIX}`], {
        AWS_ENDPOINT_URL: endpoint,
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      })
      url = await addressOf(server)
      browser = await launchBrowser(chromium, WAIT_MS)
    })
    afterAll(async () => {
      await browser?.close()
      server?.kill('SIGKILL')
      await store?.stop()
    })

    test('are shown from the list down to an episode of 10 MB, and nothing in them runs', async () => {
      const seen = await visit(browser, url)
      const { page } = seen
      await seen.go('/')
      await page.getByRole('link', { name: 'made-up', exact: true }).click()
      await seen.settle()
      expect(new URL(page.url()).pathname).toBe('/runs/made-up')
      await seen.go(`/runs/made-up/episode/${longEpisode}`)
      await page
        .getByRole('article', { name: /^Policy/ })
        .first()
        .waitFor()
      expect(await page.evaluate(() => window.attacked)).toBeUndefined()
      expect(seen.complaints).toEqual([])
      await seen.close()
    })

    test('that another process writes are seen as they grow', async () => {
      const writer = await claimRun(index(), 'growing')
      const seen = await visit(browser, url)
      const rows = seen.page.getByRole('table', { name: 'Runs' }).getByRole('link')
      await seen.go('/')
      await expect.poll(() => rows.allTextContents(), { timeout: WAIT_MS }).toContain('growing')
      await writer.append(episode({ member: 0 }, {}))
      await writer.flush()
      await seen.go('/runs/growing/episode/train/step-0000/g0/m0/a0')
      await seen.page
        .getByRole('article', { name: /^Policy/ })
        .first()
        .waitFor()
      expect(seen.complaints).toEqual([])
      await seen.close()
      await writer.close()
    })
  })
})
