export type { BlobInfo, BlobStore, ByteRange, GrowingBlobs, Listing } from './blobs.ts'
export { decodeName, encodeName } from './names.ts'
export { blobRunIndex, type BlobRunIndexOptions } from './run-index.ts'
export type { WriterPace } from './writer.ts'
