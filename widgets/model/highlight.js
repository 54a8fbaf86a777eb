// Colours for what is visible only: whole listings are never coloured.

const STRING = String.raw`"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?`;

/** The pieces of a language that have a class, which is the name of the group. @param {string} keywords @param {string} others */
const pattern = (keywords, others) => new RegExp(String.raw`${others}(?<st>${STRING})|(?<nu>\b\d[\w.]*)|(?<kw>\b(?:${keywords})\b)`, "g");

const PYTHON = pattern("def|for|in|if|else|elif|while|return|with|as|and|or|not|import|from|lambda|True|False|None|pass|range", "(?<co>#.*)|");

const JSON_TEXT = pattern("true|false|null", "");

/** @type {Record<string, RegExp | undefined>} */
const LANGUAGES = {
  python: PYTHON,
  tir: PYTHON,
  cpp: pattern(
    "void|for|if|else|while|return|const|constexpr|uint32_t|uint16_t|int32_t|int|float|bool|true|false|auto|using|namespace|struct|static|inline|template|include|unsigned|sizeof|typename",
    "(?<co>//.*)|(?<pp>^\\s*#.*)|"),
  json: JSON_TEXT,
};

/** @type {Map<string, [text: string, kind: string][]>} */
const remembered = new Map();

/**
 * The text and the class of each piece of one line.
 * @param {string} text
 * @param {string} language
 */
export function coloured(text, language) {
  const key = `${language}\n${text}`;
  const known = remembered.get(key);
  if (known) return known;
  /** @type {[text: string, kind: string][]} */
  const found = [];
  let rest = 0;
  for (const { 0: piece, index, groups = {} } of text.matchAll(LANGUAGES[language] ?? JSON_TEXT)) {
    if (rest < index) found.push([text.slice(rest, index), ""]);
    found.push([piece, Object.keys(groups).find((kind) => groups[kind] !== undefined) ?? ""]);
    rest = index + piece.length;
  }
  if (rest < text.length) found.push([text.slice(rest), ""]);
  if (remembered.size > 20000) remembered.clear();
  remembered.set(key, found);
  return found;
}
