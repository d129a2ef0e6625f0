export {
  exportFormats,
  exportRun,
  exportTables,
  type ExportFormat,
  type ExportOptions,
  type ExportTable,
} from './export-run.ts'
export type { WriteChunk } from './parquet.ts'
export type { Column, ColumnType, Row, Table } from './table.ts'
