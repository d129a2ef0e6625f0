import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** What runs in the page sees its window; the tests' own types have none. */
declare const document: {
  readonly body: { readonly textContent: string }
  querySelector(selector: string): object | null
}

/** As long as a busy machine may take for a page. */
export const WAIT_MS = 120_000

export interface Visit {
  readonly page: Page
  /** What the browser complained of: errors of scripts, refusals of the content policy, failed requests. */
  readonly complaints: string[]
  /** Goes to a path and waits until everything on it is read. */
  go(path: string): Promise<void>
  /** Waits until everything on the page is read. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** A window of its own on the explorer. */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    ...options,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  const settle = async () => {
    await page.waitForFunction(
      () =>
        document.querySelector('main > *') !== null &&
        document.querySelector('[aria-busy]') === null &&
        !/Reading/.test(document.body.textContent),
    )
  }
  return {
    page,
    complaints,
    settle,
    async go(path) {
      await page.goto(url + path)
      await settle()
    },
    close: () => context.close(),
  }
}

/** What axe finds serious or critical, one line each. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
      resultTypes: ['violations'],
    }),
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary ?? ''}`),
    )
}
