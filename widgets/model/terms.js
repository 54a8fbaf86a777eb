// Terms of the glossary in a text, with their definitions.

/** Definitions by spelling, in lower case, longest first. @typedef {Record<string, string | undefined>} Terms */

/** The definition of a word, which may be a plural. @param {Terms} terms @param {string} word */
export function meaning(terms, word) {
  const spelling = word.toLowerCase();
  return terms[spelling] ?? terms[spelling.replace(/s$/, "")];
}

/**
 * Gives what splits a text into pieces, each with the definition of the term that it is; none for what lies between.
 * @param {Terms} terms
 * @returns {(text: string) => [piece: string, meaning: string | undefined][]}
 */
export function finder(terms) {
  const pattern = new RegExp(`\\b((?:${Object.keys(terms).join("|")})s?)\\b`, "i");
  return (text) => text.split(pattern).map((piece, i) => [piece, i % 2 ? meaning(terms, piece) : undefined]);
}
