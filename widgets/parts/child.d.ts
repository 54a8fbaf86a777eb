/** What an element can hold, in lists of lists. */
export type Child = Node | string | null | undefined | false | Child[];
