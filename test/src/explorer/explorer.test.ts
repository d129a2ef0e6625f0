import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expectScore, loadBundle } from '@tiltyard/bundle'
import { isRewarded, type EpisodeSummary, type RunIndex } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { launchBrowser } from '../../support/browser.ts'
import { describeWith, program } from '../../support/machine.ts'
import { runOk } from '../../support/run.ts'
import { root } from '../../support/workspace.ts'
import { accessibilityFaults, visit, WAIT_MS, type Visit } from './browser.ts'
import { addressOf, cli, explore } from './command.ts'
import {
  attackedEpisode,
  attacks,
  claimRun,
  episode,
  longEpisode,
  metrics,
  taskOfAttack,
  TURNS,
  writeMadeUp,
} from './made-up.ts'

declare const document: {
  readonly documentElement: { readonly scrollWidth: number }
  readonly activeElement: { readonly textContent: string } | null
  querySelectorAll(selector: string): { readonly length: number }
}
declare const window: { readonly innerWidth: number; readonly attacked?: unknown }

const recipe = fileURLToPath(new URL('../main-job/recipe.ts', import.meta.url))
const RUN = 'small-desk'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 })

describeWith(program('chromium'), 'the explorer in a browser', (chromium) => {
  let folder: string
  let index: RunIndex
  let server: ChildProcess
  let url: string
  let browser: Browser
  let episodes: readonly EpisodeSummary[]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tiltyard-explorer-'))
    await runOk(process.execPath, [cli, 'train', recipe], { cwd: folder })
    index = fsRunIndex({ folder: join(folder, 'runs') })
    await writeMadeUp(index)
    const found: EpisodeSummary[] = []
    for await (const summary of index.episodes(RUN)) found.push(summary)
    episodes = found
    server = explore(folder)
    url = await addressOf(server)
    browser = await launchBrowser(chromium, WAIT_MS)
  })
  afterAll(async () => {
    await browser?.close()
    server?.kill('SIGKILL')
    await index?.close()
    await rm(folder, { recursive: true, force: true })
  })

  let seen: Visit
  let page: Page
  beforeEach(async () => {
    seen = await visit(browser, url)
    page = seen.page
  })
  afterEach(async () => {
    checkQuiet(seen)
    await seen.close()
  })

  const heading = () => page.getByRole('heading', { level: 1 }).textContent()
  const path = () => {
    const { pathname, search } = new URL(page.url())
    return decodeURIComponent(pathname) + search
  }

  test('from the runs to a token, by links; each address opens the same page again', async () => {
    await seen.go('/')
    await page.getByRole('link', { name: RUN, exact: true }).click()
    await page.getByRole('img', { name: /^Reward\. reward: from/ }).waitFor()
    expect(path()).toBe(`/runs/${RUN}`)
    await page.getByRole('link', { name: 'Steps', exact: true }).click()
    await page.getByRole('link', { name: 'train 1' }).click()
    await seen.settle()
    expect(path()).toBe(`/runs/${RUN}/train/1`)
    await page
      .getByRole('link', { name: /^episode 0: / })
      .first()
      .click()
    await page
      .getByRole('article', { name: /^Policy/ })
      .first()
      .waitFor()
    expect(path()).toBe(`/runs/${RUN}/episode/train/step-0001/g0/m0/a0`)
    const task = await heading()
    await page.reload()
    await seen.settle()
    expect(await heading()).toBe(task)
    await page.getByRole('heading', { level: 1 }).getByRole('link').click()
    await page.getByRole('heading', { name: 'Two plays, side by side' }).waitFor()
    expect(await heading()).toBe(task)
    await page
      .getByRole('navigation', { name: 'Where you are' })
      .getByRole('link', { name: RUN })
      .click()
    await page.getByRole('link', { name: 'Setup' }).click()
    await page.getByText('"replyTokens": 24').waitFor()
  })

  test('runs are found by what is typed, and those ticked share a plot', async () => {
    await seen.go('/')
    await page.getByRole('searchbox', { name: 'Search' }).fill('warm')
    await until(() =>
      page.getByRole('table', { name: 'Runs' }).getByRole('link').allTextContents(),
    ).toEqual([`${RUN}-warm-start`])
    await page.getByRole('searchbox', { name: 'Search' }).fill('')
    await page.getByRole('checkbox', { name: `compare ${RUN}`, exact: true }).check()
    await page.getByRole('checkbox', { name: 'compare made-up' }).check()
    await page.getByRole('img', { name: /made-up: from 0.5 at step 0 to 0.75 at step 1/ }).waitFor()
    const compared = page.getByRole('img', { name: new RegExp(`${RUN}: from .* at step 3`) })
    await compared.waitFor()
    await page.reload()
    await checkShown(compared)
  })

  test('a step’s filters show what the index holds, and the count says so', async () => {
    const ofStep = episodes.filter(({ key }) => key.split === 'train' && key.step === 2)
    const cut = ofStep.filter(({ end }) => end?.kind === 'cut')
    await seen.go(`/runs/${RUN}/train/2`)
    await page.getByText(`${ofStep.length} episodes in 4 groups`).waitFor()
    await page.getByLabel('End').selectOption('reply_tokens')
    await page.getByText(new RegExp(`^${cut.length} episodes? of ${ofStep.length} match`)).waitFor()
    expect(path()).toContain('end=reply_tokens')
    await page.getByRole('link', { name: 'step 3 →' }).click()
    await until(path).toContain('/train/3?end=reply_tokens')
  })

  test('episodes of a run are filtered by the address alone', async () => {
    const rewarded = episodes.filter(
      ({ key, reward }) =>
        key.split === 'eval' && reward !== undefined && isRewarded(reward) && reward.reward <= 0.5,
    )
    await seen.go(`/runs/${RUN}/episodes?split=eval&max=0.5`)
    await checkShown(page.getByText(`${rewarded.length} episodes`, { exact: true }))
  })

  test('F69: what was not trained is there with its cause, and the counts are the step’s', async () => {
    await seen.go('/runs/made-up/untrained')
    await checkShown(page.getByText('the desk burned', { exact: false }).first())
    await page
      .getByRole('table', { name: 'Episodes failed' })
      .getByRole('link', { name: 'reward 0.5' })
      .waitFor()
    for (const [title, count] of [
      ['failures', 1],
      ['retries', 1],
      ['groups dropped', 1],
      ['groups stale', 1],
    ] as const) {
      await seen.go('/runs/made-up/untrained')
      await page.getByRole('link', { name: `${title} of step 0: ${count}` }).click()
      await checkShown(page.getByText(/^1 episode of 10 match, in 1 group$/))
    }
    await seen.go('/runs/made-up/train/0')
    await checkShown(page.getByRole('button', { name: 'trained 7' }))
    await checkShown(page.getByRole('button', { name: 'stale 1' }))
  })

  test('tokens spell the reply and tell probability, mask and advantage', async () => {
    const chosen = episodes.find(
      ({ key, sampledTokens }) => key.split === 'train' && sampledTokens > 5,
    )!
    const record = await index.episode(RUN, chosen.key)
    const reply = record.episode!.replies[0]!
    const { ids, logprobs } = record.episode!.sequences[reply.sequence]!
    const tokenizer = await loadTokenizer(deskTokenizerFile)
    const { step, group, member } = chosen.key
    await seen.go(`/runs/${RUN}/episode/train/step-000${step}/g${group}/m${member}/a0`)
    await page.keyboard.press('t')
    const strip = page.getByRole('listbox', { name: /^tokens of message/ })
    await strip.waitFor()
    expect(await strip.getByRole('option').count()).toBe(reply.length)
    // A token that is a plain word reads as the vocabulary spells it.
    const spelled = Array.from(ids.subarray(reply.start, reply.start + reply.length), (token) =>
      tokenizer.decode([token]),
    )
    const word = spelled.findIndex((text) => /^ ?\w+$/.test(text))
    expect(await strip.getByRole('option').nth(word).textContent()).toBe(spelled[word])
    await strip.focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    const detail = strip.locator('xpath=following-sibling::*[1]')
    await until(() => detail.textContent()).toContain(`position ${reply.start + 1}`)
    const told = await detail.textContent()
    expect(told).toContain(`id ${ids[reply.start + 1]}`)
    expect(told).toContain('mask 1')
    expect(told).toContain('advantage 0')
    const probability = Math.exp(logprobs[reply.start + 1]!) * 100
    expect(told).toContain(`probability ${probability >= 0.01 ? probability.toPrecision(3) : ''}`)
    await page.getByRole('link', { name: 'Tokens', exact: true }).click()
    await page.getByText(`${ids.length} tokens, spelled by the demo’s tokenizer`).waitFor()
  })

  test('a play can be copied as a test case, and the case holds', async () => {
    const played = episodes.find(
      ({ key, end }) => key.split === 'train' && end?.kind === 'completed',
    )!
    const { step, group, member } = played.key
    await seen.go(`/runs/${RUN}/episode/train/step-000${step}/g${group}/m${member}/a0`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'As a test case' }).click()
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const code = String(await page.evaluate('navigator.clipboard.readText()'))
    expect(code).toBe(await page.getByLabel('Code').textContent())
    const bundle = await loadBundle(join(root, 'apps/trainer/bundles/desk'))
    const run = (text: string) =>
      // oxlint-disable-next-line typescript/no-implied-eval -- the copied code is what is tested
      new Function('expectScore', 'bundle', `return (async () => { ${text} })()`)(
        expectScore,
        bundle,
      ) as Promise<void>
    await run(code)
    await expect(run(code.replace(/": \d+,/, '": 99,'))).rejects.toThrow('expected 99')
  })

  test('F67: recorded text is text, whatever it looks like', async () => {
    for (const place of [
      '/runs/made-up',
      '/runs/made-up/setup',
      '/runs/made-up/untrained',
      '/runs/made-up/train/0',
      `/runs/made-up/task?task=${encodeURIComponent(taskOfAttack)}`,
      `/runs/made-up/episode/${attackedEpisode}?color=probability`,
      `/runs/made-up/episode/${attackedEpisode}?view=timeline`,
      `/runs/made-up/episode/${attackedEpisode}?view=raw`,
      `/runs/made-up/episode/${attackedEpisode}`,
    ]) {
      await seen.go(place)
      expect(await page.locator('main img, main script, main b[onmouseover]').count()).toBe(0)
      expect(await page.locator('a[href^="javascript:"]').count()).toBe(0)
      expect(await page.evaluate(() => window.attacked)).toBeUndefined()
    }
    const said = page.getByRole('article', { name: 'Policy, message 2' })
    const text = await said.textContent()
    for (const attack of [attacks.script, attacks.image, attacks.link, attacks.formula])
      expect(text).toContain(attack)
    expect(text).toContain('safe U+202Egnihtemos')
  })

  test('an episode of 10 MB and 300 turns scrolls: few messages exist at a time, and all can be reached', async () => {
    const { episode: recorded } = await index.episode('made-up', {
      split: 'train',
      step: 1,
      group: 0,
      member: 0,
      attempt: 0,
    })
    expect(JSON.stringify(recorded!.messages).length).toBeGreaterThan(10_000_000)
    await seen.go(`/runs/made-up/episode/${longEpisode}`)
    const rows = () => page.evaluate(() => document.querySelectorAll('main article').length)
    await page.getByText('I read page 0.').waitFor()
    expect(await rows()).toBeLessThan(30)
    // What the page has read, its own files too, is much less than the episode.
    const reads = async () =>
      page.evaluate<readonly (readonly [string, number])[]>(
        `performance.getEntriesByType('resource').map(({ name, decodedBodySize }) => [name, decodedBodySize])`,
      )
    await until(async () => (await reads()).map(([name]) => new URL(name).pathname)).toContain(
      '/api/episode/messages',
    )
    const bytes = (await reads()).reduce((sum, [, size]) => sum + size, 0)
    expect(bytes).toBeLessThan(2_000_000)
    for (let turn = 0; turn < 20; turn += 1) {
      await page.mouse.wheel(0, 3_000)
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))')
      expect(await rows()).toBeLessThan(30)
    }
    await until(() => page.getByText('I read page 0.').count()).toBe(0)
    const find = page.getByRole('searchbox', { name: 'Find in the conversation' })
    await page.keyboard.press('/')
    await find.pressSequentially('needle')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Next hit' }).click()
    await page.getByText('The needle at the end.').waitFor()
    expect(await rows()).toBeLessThan(30)
    await seen.go(`/runs/made-up/episode/${longEpisode}?message=${TURNS}`)
    const tool = page.getByRole('article', { name: `Tool, message ${TURNS}` })
    await tool.getByRole('button', { name: /^The other/ }).click()
    await until(async () => (await tool.textContent())?.length).toBeGreaterThan(34_000)
  })

  test('a live run updates: its steps, its episodes and its end', async () => {
    const writer = await claimRun(index, 'live')
    await writer.append(episode({}, { task: 'first' }))
    await writer.flush()
    const step = await visit(browser, url)
    try {
      await seen.go('/runs/live')
      await page.getByText('No step is complete yet.', { exact: false }).waitFor()
      await step.go('/runs/live/train/0')
      await step.page.getByText('1 episode in 1 group').waitFor()

      await writer.append(episode({ member: 1 }, { task: 'first' }))
      await writer.append(metrics(0, { 'env/all/reward/total': 0.25 }))
      await writer.append({ type: 'step', step: 0, position: 0, totals: {} })
      await writer.flush()
      await step.page.getByText('2 episodes in 1 group').waitFor()
      await page.getByRole('img', { name: /^Reward\. reward: from 0.25 at step 0/ }).waitFor()

      await writer.append(metrics(1, { 'env/all/reward/total': 0.5 }))
      await writer.append({ type: 'step', step: 1, position: 1, totals: {} })
      await writer.append({ type: 'end', status: 'completed', step: 2, at: 1_764_000_002_000 })
      await writer.close()
      await page
        .getByRole('img', { name: /^Reward\. reward: from 0.25 at step 0 to 0.5 at step 1/ })
        .waitFor()
      await page.getByText('completed', { exact: true }).waitFor()
      expect(step.complaints).toEqual([])
    } finally {
      await step.close()
    }
  })

  test('everything is reached by the keyboard', async () => {
    await seen.go('/')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.type('small-desk')
    await until(() => page.getByRole('table', { name: 'Runs' }).getByRole('link').count()).toBe(2)
    await page.keyboard.press('Tab')
    await page.keyboard.press('j')
    const focused = () => page.evaluate(() => document.activeElement?.textContent)
    expect(await focused()).toBe(RUN)
    await page.keyboard.press('j')
    expect(await focused()).toBe(`${RUN}-warm-start`)
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await until(path).toBe(`/runs/${RUN}`)
    await seen.go(`/runs/${RUN}/train/1`)
    await checkShown(page.getByRole('link', { name: 'step 2 →' }))
    await page.keyboard.press(']')
    await until(path).toBe(`/runs/${RUN}/train/2`)
    await checkShown(page.getByRole('link', { name: '← step 1' }))
    await page.keyboard.press('[')
    await until(path).toBe(`/runs/${RUN}/train/1`)
    await seen.settle()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await until(path).toBe(`/runs/${RUN}/episode/train/step-0001/g0/m0/a0`)
    await seen.settle()
    await checkShown(page.getByRole('navigation', { name: 'Episodes of this group' }))
    await page.keyboard.press(']')
    await until(path).toBe(`/runs/${RUN}/episode/train/step-0001/g0/m1/a0`)
    await page.keyboard.press('u')
    await until(path).toBe(`/runs/${RUN}/train/1`)
  })

  const pages = [
    ['runs', `/?runs=${RUN}&runs=made-up`],
    ['run', `/runs/${RUN}`],
    ['steps', `/runs/${RUN}/steps`],
    ['episodes', `/runs/${RUN}/episodes`],
    ['untrained', '/runs/made-up/untrained'],
    ['setup', `/runs/${RUN}/setup`],
    ['step', '/runs/made-up/train/0'],
    ['task', `/runs/made-up/task?task=${encodeURIComponent(taskOfAttack)}`],
    ['episode', `/runs/${RUN}/episode/train/step-0001/g0/m0/a0?color=probability`],
    ['timeline', `/runs/made-up/episode/${longEpisode}?view=timeline`],
    ['tokens', `/runs/${RUN}/episode/train/step-0001/g0/m0/a0?view=tokens`],
    ['raw', `/runs/${RUN}/episode/train/step-0001/g0/m0/a0?view=raw`],
  ] as const

  test.each(pages)(
    'axe finds nothing serious on the page %s, by day, by night, on a phone',
    async (_, place) => {
      await seen.go(place)
      expect(await accessibilityFaults(page)).toEqual([])
      await page.emulateMedia({ colorScheme: 'dark' })
      expect(await accessibilityFaults(page)).toEqual([])
      await page.setViewportSize({ width: 390, height: 844 })
      await seen.settle()
      expect(await accessibilityFaults(page)).toEqual([])
      // Readable without moving it sideways.
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth),
      ).toBeLessThanOrEqual(0)
    },
  )

  test('a run, an episode or a page that isn’t there is said in words', async () => {
    await seen.go('/runs/smal-desk')
    await checkShown(page.getByRole('alert').getByText('did you mean "small-desk"?'))
    await seen.go(`/runs/${RUN}/episode/..%2F..%2Fetc`)
    await checkShown(page.getByRole('alert').getByText("is no episode's id"))
    await seen.go('/no/such/page')
    await checkShown(page.getByText('There is no such page.'))
    // Chromium reports every answer that is no success.
    seen.complaints.splice(0)
  })

  test('the documents have pictures of it', async () => {
    // `TILTYARD_PICTURES="<place> --tokenizer <file>"` makes them anew, of runs that look like something.
    const asked = process.env['TILTYARD_PICTURES']
    const target = asked === undefined ? folder : join(root, 'apps/explorer/docs')
    const pictured = asked === undefined ? undefined : explore(root, asked.split(' '))
    const shown = await visit(browser, pictured === undefined ? url : await addressOf(pictured))
    try {
      await shown.go('/?q=completed')
      const runs = await shown.page
        .getByRole('table', { name: 'Runs' })
        .getByRole('link')
        .allTextContents()
      const run = asked === undefined ? RUN : runs.find((name) => !name.endsWith('-warm-start'))!
      for (const [name, place] of [
        ['run', ''],
        ['episode', '/episode/train/step-0001/g0/m0/a0?color=advantage'],
      ]) {
        await shown.go(`/runs/${run}${place}`)
        await shown.page.waitForLoadState('networkidle')
        const picture = await shown.page.screenshot({ path: join(target, `${name}.png`) })
        // Width and height stand behind PNG's signature and the head of its first chunk.
        expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([1280, 800])
      }
      expect(shown.complaints).toEqual([])
    } finally {
      await shown.close()
      pictured?.kill('SIGKILL')
    }
  })

  test('Ctrl-C ends it, with exit code 0', async () => {
    const own = explore(folder, ['runs'])
    await fetch(`${await addressOf(own)}/api/runs`)
    own.kill('SIGINT')
    expect(await once(own, 'exit')).toEqual([0, null])
  })
})

/** Asks again and again until it is so, as long as a busy machine may take. */
const until = <Value>(ask: () => Value) => expect.poll(ask, { timeout: WAIT_MS })

/** Waits until it is to be seen; a page that never shows it is an error. */
async function checkShown(locator: Locator): Promise<void> {
  await locator.waitFor({ state: 'visible' })
}

/** Nothing in the page failed, and the content policy had nothing to refuse. */
function checkQuiet({ complaints }: Visit): void {
  expect(complaints).toEqual([])
}
