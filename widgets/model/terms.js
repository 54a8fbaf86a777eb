// Terms of the glossary in a text, with their definitions.

/**
 * Gives what splits a text into pieces, each with the definition of the term that it is; none for what lies between.
 * @param {Record<string, string>} terms definitions by spelling, in lower case, longest first
 * @returns {(text: string) => [piece: string, meaning: string | undefined][]}
 */
export function finder(terms) {
  const pattern = new RegExp(`\\b((?:${Object.keys(terms).join("|")})s?)\\b`, "i");
  /** @param {string} word */
  const meaning = (word) => terms[word] ?? terms[word.slice(0, -1)];
  return (text) => text.split(pattern).map((piece, i) => [piece, i % 2 ? meaning(piece.toLowerCase()) : undefined]);
}
