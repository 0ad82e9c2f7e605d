// What one call of a built-in tool may cost, and what the model is told when the call needs more.
// `docs/limits.md` has the table.

/** Calls of one session that run at the same time. The others wait. */
export const MAX_CALLS = 4;

/** The size of what has to be in memory as a whole: a file to edit, an image, content to write, lines counted from the end. */
export const MAX_WHOLE_FILE_BYTES = 64 * 1024 * 1024;
/** Lines of a file to edit: the SDK makes a text of each line, several times. */
export const MAX_EDITED_LINES = 2_000_000;
/** An image that Pi's settings have sent as it is. */
export const MAX_UNSCALED_IMAGE_BYTES = 16 * 1024 * 1024;
/** How much of a text file is read, whose lines are counted. */
export const MAX_READ_BYTES = 1024 * 1024 * 1024;
/** Reading a text file. */
export const MAX_READ_MS = 20_000;

/** A search with ripgrep, which runs in processes of its own. */
export const MAX_SEARCH_MS = 60_000;
/** Address space of a search, if the system knows this limit. Ripgrep holds the longest line about three times. */
export const MAX_SEARCH_KIB = 512 * 1024;
export const MAX_SEARCH_THREADS = 4;
/** A search that needed more memory is tried again without files that are larger than this. */
export const MAX_SEARCHED_FILE = "32M";

/** A change or an image that is judged and made in a process of its own. */
export const MAX_APART_MS = 30_000;
export const MAX_APART_HEAP_MIB = 512;
/** What an image may need while it is decoded and scaled, in pages of 64 KiB. */
export const MAX_APART_IMAGE_PAGES = 12_288;

/** One call of a file tool, whatever it does. */
export const MAX_CALL_MS = 90_000;

/** The longest path, and the longest argument of a program, that the system takes. */
export const MAX_PATH_BYTES = 4096;
export const MAX_PATTERN_UNITS = 16_384;

/** How much of a result the tools show: as much as Pi's. */
export const MAX_SHOWN_BYTES = 50 * 1024;
/** More entries than this never fit into a result, since each takes a byte and a line end. */
export const MAX_ENTRIES = MAX_SHOWN_BYTES / 2 + 1;

export const OUTSIDE = "This session can only access files and directories inside its workspace.";
export const SPECIAL = "Only regular files and directories can be accessed.";
export const TOO_LARGE = "This file is too large for this operation.";
export const TOO_LONG_A_PATTERN = "This pattern is too long.";
export const NO_PATTERN = "This pattern cannot be used: it holds a zero character.";
export const NO_PATH = "This path cannot be used: it is too long or holds a zero character.";
export const TOO_LONG = "This operation took too long and was ended.";
export const TOO_COSTLY = "This operation needs too much time or memory and was ended. Ask for less at once.";
export const SEARCH_FAILED = "The search failed.";
export const NO_RIPGREP = "ripgrep (rg) is not available and could not be downloaded";
export const ABORTED = "Operation aborted";

/** What may stand as a note below a result. */
export const ENDED_EARLY = "The search took too long and was ended early: there may be more. Search a smaller directory";
export const NOT_ALL_FILES = "Files over 32 MB were left out, since a line in one of them is too long to search";
export const UNREADABLE = "Some files or directories could not be read";
export const CHANGED = "Some results were left out, since their files were changed during the search";
export const READ_IN_PART = "Only the beginning of this file was read, so its lines were not all counted";

/** The longest sentence: more than a path and a complaint about a pattern need. */
export const MAX_TOLD_UNITS = 16_384;
export const OPERATION_FAILED = "The operation failed.";
