/** Position of a passage in its file; fields depend on the format. */
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

/** Part of a file by its structure: the text below one heading, one page, one row. */
export interface Section {
  readonly text: string;
  readonly location: Location;
  /** Title of the section; default: the file's. */
  readonly title?: string;
}

/** A parsed file. */
export interface Parsed {
  readonly title: string | undefined;
  readonly sections: readonly Section[];
}

/** File whose content does not match its extension; the message is for the log. */
export class BadFile extends Error {
  override readonly name = 'BadFile';
}
