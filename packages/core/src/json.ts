export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

export interface JsonObject {
  readonly [key: string]: JsonValue
}

/** A JSON Schema (draft 2020-12, or the older subset that tool definitions use), as plain JSON. */
export type JsonSchema = JsonObject
