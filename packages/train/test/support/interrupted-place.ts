import type { Place } from './runs.ts'

/** Whose methods are counted, too, when a call gives one. */
const PARTS = ['learner', 'sampler', 'publish', 'claim', 'checkpoints']

/** The same object, which tells when a call of it begins and when its promise is settled. */
function told<T extends object>(it: T, tell: () => void): T {
  return new Proxy(it, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || typeof key === 'symbol') return value
      const part = (given: unknown) => (PARTS.includes(key) ? told(given as object, tell) : given)
      const settled = async (promise: Promise<unknown>) => {
        try {
          return part(await promise)
        } finally {
          tell()
        }
      }
      return (...given: readonly unknown[]) => {
        tell()
        const answer: unknown = Reflect.apply(value, target, given)
        return answer instanceof Promise ? settled(answer) : part(answer)
      }
    },
  })
}

/** The place, telling each moment at which its index, its backend, a learner or a sampler begins or ends a call. */
export function telling({ index, backend }: Place, tell: () => void): Place {
  return { index: told(index, tell), backend: told(backend, tell) }
}
