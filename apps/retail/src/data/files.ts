import type { LoadContext } from '@tiltyard/bundle'
import { ConfigError } from '@tiltyard/core'

/** The benchmark's files that the bundle reads, in a folder that holds them side by side. */
const benchmarkFiles = ['db.json', 'tasks.json', 'split_tasks.json', 'policy.md'] as const
type BenchmarkFile = (typeof benchmarkFiles)[number]

/** Where they lie in a checkout of the benchmark. */
const checkoutFolder = 'data/tau2/domains/retail/'
/** Where a checkout has the tools' descriptions: in Python. */
const checkoutTools = 'src/tau2/domains/retail/tools.py'

type Data = LoadContext['data']

/** @throws ConfigError when the folder is neither, naming what is missing. */
export async function checkFiles({ data }: Pick<LoadContext, 'data'>): Promise<void> {
  const isCheckout = (await optionalText(data, `${checkoutFolder}tasks.json`)) !== undefined
  const wanted = isCheckout
    ? [...benchmarkFiles.map((file) => `${checkoutFolder}${file}`), checkoutTools]
    : [...benchmarkFiles, 'tools.json']
  const missing: string[] = []
  for (const file of wanted) if ((await optionalText(data, file)) === undefined) missing.push(file)
  if (missing.length > 0)
    throw new ConfigError('data', [
      {
        at: '',
        message: `the folder of data is neither a checkout of tau2-bench nor its retail files side by side; it lacks ${missing.join(', ')}`,
      },
    ])
}

export async function benchmarkText(
  { data }: Pick<LoadContext, 'data'>,
  file: BenchmarkFile,
): Promise<string> {
  return (await optionalText(data, file)) ?? (await data.readText(`${checkoutFolder}${file}`))
}

/** What describes the tools: definitions as JSON, or the benchmark's own source. */
export async function toolsText({
  data,
}: Pick<LoadContext, 'data'>): Promise<{ readonly json: string } | { readonly python: string }> {
  const json = await optionalText(data, 'tools.json')
  return json === undefined ? { python: await data.readText(checkoutTools) } : { json }
}

/** Our own reading of the tasks, where the folder has it. */
export async function readingText({
  data,
}: Pick<LoadContext, 'data'>): Promise<string | undefined> {
  return optionalText(data, 'single-turn.json')
}

async function optionalText(data: Data, file: string): Promise<string | undefined> {
  return data.readText(file).catch(() => undefined)
}
