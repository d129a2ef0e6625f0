import {
  StateError,
  type Env,
  type ImagePart,
  type PlayContext,
  type UserMessage,
} from '@tiltyard/core'
import { charRenderer, scriptedEnv, scriptedSampler } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { envEpisode, IMAGE_PLACEHOLDER, playNeeds, replySeed, sequencesOf } from '../src/index.ts'
import { playOne, promptText } from './support/play.ts'

const user = (content: string): UserMessage => ({ role: 'user', content })

describe('images', () => {
  const image: ImagePart = {
    type: 'image',
    format: 'png',
    data: Uint8Array.of(1),
    width: 2,
    height: 2,
  }
  const observation = {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'See ' }, image] }],
  } as const

  test('E16: without a place for images a task with one is a mistake of the set-up', async () => {
    await expect(playOne({ observation })).rejects.toThrow(
      'the task shows an image, and the renderer char has no images',
    )
    expect(playNeeds(charRenderer())).toEqual({ tools: true, images: false, changedHead: true })
  })

  test('E16: a placeholder stands for it where chosen, and is counted', async () => {
    const sampler = scriptedSampler(['done'])
    const { episode } = await playOne({ observation }, { sampler, images: 'placeholder' })
    expect(promptText(sampler.requests[0]!)).toContain(`See ${IMAGE_PLACEHOLDER}`)
    expect(episode.metrics['images_replaced']).toBe(1)
    expect(playNeeds(charRenderer(), 'placeholder').images).toBe(true)
  })

  test('a renderer with images shows it', async () => {
    const sampler = scriptedSampler(['done'])
    const renderer = charRenderer({ imageTokens: 4 })
    const { episode } = await playOne({ observation }, { sampler, renderer })
    expect(promptText(sampler.requests[0]!)).toContain('See <image>')
    expect(episode.replies[0]?.prompt.length).toBe('See '.length + 4 + 3)
  })
})

describe('hooks', () => {
  test('add user messages before a reply, which the policy sees and the record has', async () => {
    const sampler = scriptedSampler(['⟦look {}⟧', 'done'])
    const seen: number[] = []
    const { episode } = await playOne(
      {},
      {
        sampler,
        hooks: {
          beforeReply({ replies, messages }) {
            seen.push(messages.length)
            return replies === 1 ? [user('Hurry.')] : []
          },
        },
      },
    )
    expect(promptText(sampler.requests[1]!)).toMatch(/⟨tool⟩ok⟨end⟩⟨user⟩Hurry\.⟨end⟩⟨assistant⟩$/)
    expect(seen).toEqual([1, 3])
    expect(sequencesOf(episode.replies)).toHaveLength(1)
  })

  test('that throw fail the episode', async () => {
    const hooks = {
      beforeReply() {
        throw new Error('no hook')
      },
    }
    await expect(playOne({}, { hooks })).rejects.toThrow('no hook')
  })
})

describe('the episode of an Env', () => {
  test('E6: ends once, however often and at once it is told to', async () => {
    const env = scriptedEnv()
    const episode = envEpisode(env)
    await Promise.all([
      episode.end({ kind: 'completed' }),
      episode.end({ kind: 'cut', by: 'turns' }),
    ])
    await episode.end({ kind: 'cancelled' })
    expect(env.log).toEqual(['end completed'])
  })

  test('is played once', async () => {
    const context: PlayContext = {
      signal: new AbortController().signal,
      seed: 1,
      limits: {},
      record: { async conversation() {}, async reply() {}, async observation() {} },
    }
    const sampler = scriptedSampler(['done'])
    const episode = envEpisode(scriptedEnv())
    const policy = { sampler, renderer: charRenderer(), sampling: { temperature: 0.5 } }
    await episode.play(policy, context)
    await expect(episode.play(policy, context)).rejects.toThrow(StateError)
    expect(sampler.requests).toMatchObject([
      { temperature: 0.5, seeds: [replySeed(1, 0)], stop: charRenderer().stop },
    ])
  })

  test('is refused for an object of another contract', () => {
    const other = { ...scriptedEnv(), specVersion: 'env/2' } as unknown as Env
    expect(() => envEpisode(other)).toThrow(
      'expected an object with specVersion "env/1", got "env/2"',
    )
  })
})
