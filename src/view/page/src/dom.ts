// Creates elements. Text is always set as text, so data of a run file is never parsed as HTML.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

// Functions become listeners (`onclick`), booleans present or absent attributes, other values attributes.
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  element.append(
    ...(children.filter((child) => child !== null && child !== undefined && child !== false) as (Node | string)[]),
  );
  return element;
}

export function set(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

// Sets the text only if it differs, because screen readers repeat text that is set.
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

let made = 0;
export function fresh_id(stem: string): string {
  return `${stem}-${++made}`;
}
