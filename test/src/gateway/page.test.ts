import type { PolicyHandle, Sampler } from '@tiltyard/core'
import { createGateway, serveGateway, type Gateway, type GatewayServer } from '@tiltyard/gateway'
import { charRenderer, charReply, scriptedSampler } from '@tiltyard/testkit'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { launchBrowser } from '../../support/browser.ts'
import { describeWith, program } from '../../support/machine.ts'

const renderer = charRenderer()
const unkind =
  'Hello <img src=x onerror="document.title = \'owned\'"><script>document.title = "owned"</script>'

/** Says the first letters of its first reply, then waits to be let on. */
function haltingSampler(replies: readonly string[], release: Promise<void>): Sampler {
  const scripted = scriptedSampler(replies, { version: { id: 'run@40', step: 40 } })
  let isFirst = true
  return {
    ...scripted,
    async sample(request, options) {
      if (!isFirst) return scripted.sample(request, options)
      isFirst = false
      const start = charReply(replies[0]!.slice(0, 5), false)
      request.onTokens?.(0, start, new Float32Array(start.length))
      await release
      return scripted.sample({ ...request, onTokens: () => {} }, options)
    },
  }
}

describeWith(program('chromium'), 'the chat page in a browser', (chromium) => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser(chromium)
  })
  afterAll(() => browser.close())

  let gateway: Gateway
  let server: GatewayServer
  let page: Page
  let release: () => void
  let problems: string[]
  beforeEach(async () => {
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const after = haltingSampler(
      [unkind, 'Let me see.⟦lookup_order {"id": 7}⟧', 'It is on its way.'],
      released,
    )
    const before = scriptedSampler(['I was worse.', 'I know no tools.'], {
      version: { id: 'run@0', step: 0 },
    })
    const handle = (sampler: Sampler): PolicyHandle => ({ sampler, renderer, sampling: {} })
    gateway = createGateway({
      serving: {},
      policies: { policy: handle(after), 'step-0': handle(before) },
    })
    server = await serveGateway(gateway)
    page = await browser.newPage()
    problems = []
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text())
    })
    await page.goto(gateway.origin)
    await page.locator('#left option').first().waitFor({ state: 'attached' })
  })
  afterEach(async () => {
    release()
    await page.close()
    await server.close()
    await gateway.close()
  })

  const say = async (words: string) => {
    await page.locator('#words').fill(words)
    await page.locator('#words').press('Enter')
  }
  const leftReply = (index: number) =>
    page.locator('#left-side .message.assistant').nth(index).locator('.content')
  const rightReply = (index: number) =>
    page.locator('#right-side .message.assistant').nth(index).locator('.content')

  test('two versions answer side by side, the text as it comes, and markup stays text', async () => {
    await say('Who are you?')
    await leftReply(0).getByText('Hello', { exact: true }).waitFor()
    await rightReply(0).getByText('I was worse.').waitFor()
    release()
    await leftReply(0).getByText(unkind, { exact: true }).waitFor()
    expect(await leftReply(0).textContent()).toBe(unkind)
    expect(await page.locator('main script, main img').count()).toBe(0)
    expect(await page.title()).toBe('Tiltyard: talk to a policy')
    const who = page.locator('.message.assistant .who')
    expect(await who.allTextContents()).toEqual(['policy (run@40)', 'step-0 (run@0)'])
    expect(problems).toEqual([])
  })

  test('a tool’s call is shown, and goes on with the answer that a person gives', async () => {
    release()
    await page.locator('#right').selectOption('')
    expect(await page.locator('#right-side').isVisible()).toBe(false)
    await page.locator('summary').click()
    await page
      .locator('#tools')
      .fill('[{"name": "lookup_order", "parameters": {"type": "object"}}]')
    await say('Hello.')
    await leftReply(0).getByText('Hello <img', { exact: false }).waitFor()
    await say('Where is order 7?')
    const call = page.locator('#left-side .call')
    await call.waitFor()
    expect(await call.textContent()).toBe('lookup_order({"id": 7})')
    expect(await leftReply(1).textContent()).toBe('Let me see.')
    await say('Well?')
    await page.getByText('Answer the calls first.').waitFor()
    await page.getByLabel('Answer of lookup_order').fill('<b>shipped</b>')
    await page.getByRole('button', { name: 'Answer' }).click()
    await leftReply(2).getByText('It is on its way.').waitFor()
    const given = page.locator('#left-side .message.tool .content')
    expect(await given.allTextContents()).toEqual(['<b>shipped</b>'])
    expect(problems).toEqual([])
  })

  test('a reply under way can be stopped, and a refusal is told', async () => {
    await say('Who are you?')
    await leftReply(0).getByText('Hello', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.locator('#stop:disabled').waitFor()
    expect(await page.locator('#problem').textContent()).toBe('')
    await page.locator('summary').click()
    await page.locator('#tools').fill('[{"name": ""}]')
    await page.getByRole('button', { name: 'New conversation' }).click()
    await say('Again.')
    await page.getByText('has no name').waitFor()
  })
})
