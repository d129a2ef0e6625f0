import type { Clock, Learner, Logger, Sampler } from '@tiltyard/core'

import type { OrderedCalls } from './ordered-calls.ts'
import { Refusal } from './refusal.ts'

/** A model in training. */
export interface ServedModel {
  readonly id: string
  readonly session: string
  readonly baseModel: string
  /** Absent: the whole model is trained. */
  readonly rank?: number
  readonly calls: OrderedCalls
  readonly userMetadata?: Readonly<Record<string, unknown>>
  /** Present once it is made; a load puts another in its place. */
  learner?: Learner
  /** Milliseconds since 1970. */
  usedAt: number
}

/** Fixed weights that a client samples from. */
export interface ServedSampler {
  readonly id: string
  readonly session: string
  readonly baseModel: string
  readonly path?: string
  readonly sampler: Promise<Sampler>
  /** Request ids by number, for requests that come again. */
  readonly known: Map<string, string>
}

interface ServedSession {
  readonly id: string
  readonly models: Map<number, { readonly model: ServedModel; readonly requestId: string }>
  readonly samplers: Map<number, ServedSampler>
  /** Of the clock. */
  heardAt: number
}

export interface Sessions {
  create(): ServedSession
  /** Marks it as in use. @throws Refusal 404, or 410 when it is over. */
  get(id: string): ServedSession
  all(): readonly ServedSession[]
  model(id: string): ServedModel
  models(): readonly ServedModel[]
  addModel(model: ServedModel): void
  removeModel(id: string): Promise<void>
  sampler(id: string): ServedSampler
  addSampler(sampler: ServedSampler): void
  /** Ends it and frees what it held. */
  finish(id: string): Promise<void>
  /** Ends those that have been silent for too long. */
  sweep(): Promise<void>
}

/** Ids of sessions that are over, so that their clients learn it. */
const REMEMBERED = 10_000

export function createSessions(
  clock: Clock,
  logger: Logger,
  limits: { readonly sessions: number; readonly sessionMs: number },
): Sessions {
  const sessions = new Map<string, ServedSession>()
  const models = new Map<string, ServedModel>()
  const samplers = new Map<string, ServedSampler>()
  const over = new Set<string>()

  const removeModel = async (id: string) => {
    const model = models.get(id)
    if (model === undefined) throw new Refusal(404, `no model ${id}`)
    models.delete(id)
    model.calls.close(`model ${id} has been unloaded`)
    await model.learner?.close()
  }

  const finish = async (id: string) => {
    const session = sessions.get(id)
    if (session === undefined) return
    sessions.delete(id)
    over.add(id)
    if (over.size > REMEMBERED) over.delete(over.values().next().value!)
    const closing: Promise<unknown>[] = []
    for (const { model } of session.models.values())
      if (models.has(model.id)) closing.push(removeModel(model.id))
    for (const served of session.samplers.values()) {
      samplers.delete(served.id)
      closing.push(served.sampler.then((sampler) => sampler.close()))
    }
    for (const { status } of await Promise.allSettled(closing))
      if (status === 'rejected') logger.warn('a part of a session didn’t close', { session: id })
  }

  return {
    create() {
      if (sessions.size >= limits.sessions)
        throw new Refusal(429, `${limits.sessions} sessions are open; try again later`)
      const session: ServedSession = {
        id: crypto.randomUUID(),
        models: new Map(),
        samplers: new Map(),
        heardAt: clock.now(),
      }
      sessions.set(session.id, session)
      return session
    },
    get(id) {
      const session = sessions.get(id)
      if (session === undefined)
        throw over.has(id)
          ? new Refusal(410, `session ${id} is over`)
          : new Refusal(404, `no session ${id}`)
      session.heardAt = clock.now()
      return session
    },
    all: () => [...sessions.values()],
    model(id) {
      const model = models.get(id)
      if (model === undefined) throw new Refusal(404, `no model ${id}; it may have been unloaded`)
      model.usedAt = Date.now()
      const session = sessions.get(model.session)
      if (session !== undefined) session.heardAt = clock.now()
      return model
    },
    models: () => [...models.values()],
    addModel(model) {
      models.set(model.id, model)
    },
    removeModel,
    sampler(id) {
      const sampler = samplers.get(id)
      if (sampler === undefined) throw new Refusal(404, `no sampling session ${id}`)
      return sampler
    },
    addSampler(sampler) {
      samplers.set(sampler.id, sampler)
    },
    finish,
    async sweep() {
      for (const session of sessions.values()) {
        if (clock.now() - session.heardAt < limits.sessionMs) continue
        logger.info('a session has been silent for too long and ends', { session: session.id })
        await finish(session.id)
      }
    },
  }
}
