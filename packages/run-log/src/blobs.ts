/**
 * What the record of runs needs of a store. A folder, a bucket and a map in memory can all promise it. Keys are plain ASCII,
 * with `/` between folders; the run log makes them, so nothing in them comes from outside unencoded.
 */
export interface BlobStore {
  /** For messages: `folder ./runs`, `s3://bucket/prefix`. Holds no credential. */
  readonly name: string
  /**
   * Create-only: writes a blob that must not exist; durable when it resolves. Of many racers one gets true. False: the key holds
   * other content. True also when an earlier try got through and only its answer was lost, so that a retry is harmless.
   * @throws StoreError when the store fails or refuses.
   */
  create(key: string, content: Uint8Array, signal?: AbortSignal): Promise<boolean>
  /** Writes or replaces; a reader sees the old or the new whole. For what can be made again: signs of life, views. */
  replace(key: string, content: Uint8Array, signal?: AbortSignal): Promise<void>
  /** The blob or a part of it, cut where the blob ends. Undefined: there is no such blob. */
  read(key: string, range?: ByteRange): Promise<Uint8Array | undefined>
  /** What lies directly in a folder (`''`: the root). Empty when there is no such folder. In any order. */
  list(folder: string): Promise<Listing>
  /** No error when there is no such blob. */
  remove(key: string): Promise<void>
  /** Absent when blobs can't grow, as in a bucket: then each batch of a writer becomes blobs of its own. */
  readonly growing?: GrowingBlobs
}

export interface GrowingBlobs {
  /** Bytes of a blob; 0 when there is none. */
  length(key: string): Promise<number>
  /**
   * Writes at `offset`, which is the blob's length, or less when an earlier try failed half-way; makes the blob if need be.
   * Durable when it resolves. A blob has one writer.
   */
  write(key: string, offset: number, content: Uint8Array): Promise<void>
}

/** Bytes from `start` to `end` (exclusive), or the last so many. */
export type ByteRange = { readonly start: number; readonly end: number } | { readonly last: number }

export interface Listing {
  readonly blobs: readonly BlobInfo[]
  /** Names of the folders that hold something. */
  readonly folders: readonly string[]
}

export interface BlobInfo {
  /** Without its folder. */
  readonly name: string
  readonly bytes: number
  /** Milliseconds since it was written, by the store's clock. */
  readonly age: number
}
