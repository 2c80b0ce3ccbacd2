/** Where a passage stands in its file; the fields that the format knows. */
export interface Location {
  /** Headings above it, outermost first. */
  readonly headings?: readonly string[];
  /** Page of a PDF, from 1. */
  readonly page?: number;
  /** Row of a table, or item of a list of objects, from 1. */
  readonly row?: number;
  /** Line in the file, from 1. */
  readonly line?: number;
}

/** A piece of a file as its structure has it: what stands below one heading, one page, one row. */
export interface Section {
  readonly text: string;
  readonly location: Location;
  /** A title of its own; else the file's. */
  readonly title?: string;
}

/** A parsed file. */
export interface Parsed {
  readonly title: string | undefined;
  readonly sections: readonly Section[];
}

/** A file that cannot be read as what its ending says; the message is for the log. */
export class BadFile extends Error {
  override readonly name = 'BadFile';
}
