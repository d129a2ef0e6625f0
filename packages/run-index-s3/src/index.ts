export type { CredentialsSource, S3Credentials } from './credentials.ts'
export type { RequestReport, S3RunIndexOptions } from './options.ts'
export { s3RunIndex } from './s3-run-index.ts'
