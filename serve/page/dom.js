// The pages of llamac share this file: elements, numbers as text, tables. It
// comes first.
"use strict";

// An element; children are nodes or text. Attributes that are null are left out,
// functions listen to the event of that name. A style goes in through the object
// model: a policy that forbids inline styles allows that.
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") element.style.cssText = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

// Closes a dialog, unless a field has what it does not take: then that one says so.
function closeDialog(dialog) {
  const wrong = dialog.querySelector("input:invalid");
  if (wrong) wrong.reportValidity();
  else dialog.close();
}

// An id that no other element has.
function newId(kind) {
  newId.last = (newId.last || 0) + 1;
  return `${kind}-${newId.last}`;
}

// 1234567 as "1,234,567".
function whole(number) {
  return Math.round(number).toLocaleString("en-US");
}

function scaled(number, base, units) {
  let unit = 0;
  while (number >= base && unit < units.length - 1) {
    number /= base;
    ++unit;
  }
  const digits = unit === 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${units[unit]}`;
}

function bytes(number) {
  return scaled(number, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
}

function flops(number) {
  return scaled(number, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
}

// 1234, "row" as "1,234 rows".
function count(number, what) {
  return `${whole(number)} ${what}${number === 1 ? "" : "s"}`;
}

function percent(share) {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function microseconds(seconds) {
  const us = seconds * 1e6;
  return `${us >= 100 ? whole(us) : us.toPrecision(3)} \u00b5s`;
}

function milliseconds(seconds) {
  const ms = seconds * 1000;
  return `${ms.toFixed(ms < 10 ? 2 : 1)} ms`;
}

function sum(items, of) {
  return items.reduce((total, item) => total + of(item), 0);
}

// A table; columns are [title, class], rows lists of cells, each text or a node.
function table(caption, columns, rows, foot) {
  // Roles are said because narrow windows show cells as blocks, with the titles.
  const cell = (content, index, tag) =>
    el(tag, { class: `${columns[index][1] || ""} ${content === "\u2013" ? "nothing" : ""}`.trim() || null, scope: tag === "th" ? "row" : null, role: tag === "th" ? "rowheader" : "cell", "data-title": columns[index][0] }, content);
  const line = (cells) => el("tr", { role: "row" }, ...cells.map((content, i) => cell(content, i, i ? "td" : "th")));
  const part = (tag, ...lines) => el(tag, { role: "rowgroup" }, ...lines);
  return el(
    "table",
    { class: "reflow", role: "table" },
    caption ? el("caption", {}, caption) : null,
    part("thead", el("tr", { role: "row" }, ...columns.map(([title, kind]) => el("th", { scope: "col", role: "columnheader", class: kind || null }, title)))),
    part("tbody", ...rows.map(line)),
    foot ? part("tfoot", line(foot)) : null,
  );
}

// A bar of `share` of `width` pixels, and the share in percent.
function shareBar(share, width) {
  return el("span", { class: "whole" }, el("span", { class: "share", style: `width:${(width * share).toFixed(1)}px` }), `${(100 * share).toFixed(1)} %`);
}
