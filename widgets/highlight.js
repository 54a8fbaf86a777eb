// Colours for what is visible only: whole listings are never coloured.

const KEYWORDS = {
  python: /^(def|for|in|if|else|elif|while|return|with|as|and|or|not|import|from|lambda|True|False|None|pass|range)$/,
  cpp: /^(void|for|if|else|while|return|const|constexpr|uint32_t|uint16_t|int32_t|int|float|bool|true|false|auto|using|namespace|struct|static|inline|template|include|unsigned|sizeof|typename)$/,
  json: /^(true|false|null)$/,
};
KEYWORDS.tir = KEYWORDS.python;
const COMMENT = { python: "#", tir: "#", cpp: "//", json: null };
const TOKEN = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\/\/.*|#.*|\d[\w.]*|[A-Za-z_]\w*|\s+|./gu;

const remembered = new Map();

/** [[text, class], ...] of one line. */
export function pieces(text, language) {
  const key = `${language}\n${text}`;
  let found = remembered.get(key);
  if (found) return found;
  found = [];
  for (const [token] of text.matchAll(TOKEN)) {
    const last = found[found.length - 1];
    const kind = classOf(token, language, found);
    if (kind === "rest") found.push(...[...token.matchAll(/[A-Za-z_]\w*|\d[\w.]*|\s+|./gu)].map(([one]) => [one, ""]));
    else if (last && last[1] === kind) last[0] += token;
    else found.push([token, kind]);
  }
  if (remembered.size > 20000) remembered.clear();
  remembered.set(key, found);
  return found;
}

function classOf(token, language, before) {
  if (/^["']/.test(token)) return "st";
  const comment = COMMENT[language];
  if (token.startsWith("//") || token.startsWith("#")) {
    if (comment && token.startsWith(comment)) return "co";
    if (language === "cpp" && !before.some(([text]) => text.trim())) return "pp";
    return "rest";
  }
  if (/^\d/.test(token)) return "nu";
  if (KEYWORDS[language]?.test(token)) return "kw";
  return "";
}
