// SPDX-License-Identifier: Apache-2.0
// For test-graphql-js.py: graphql-dump.c once more, with the tree that Debian's node-graphql reads.
// Control characters and definitions of types are refused by intention.
"use strict";
const fs = require("fs");
const { parse } = require("/usr/share/nodejs/graphql");

const hex = (text) => Buffer.from(text).toString("hex");
const all = (...lists) => lists.flatMap((nodes) => nodes || []).map(dump).join("");
const line = (kind, name, text, parts) => `${kind} ${name} ${text}(${parts || ""})`;
const text = (node) => (node ? node.value : "");
const selections = (node) => (node.selectionSet ? node.selectionSet.selections : []);
const one = (node) => (node ? [node] : []);
const on = (node) => (node.typeCondition ? node.typeCondition.name.value : "");

const writers = {
  Document: (n) => all(n.definitions),
  OperationDefinition: (n) =>
    line("operation=" + n.operation, text(n.name), "", all(n.variableDefinitions, n.directives, selections(n))),
  FragmentDefinition: (n) => line("fragment", n.name.value, on(n), all(n.directives, selections(n))),
  VariableDefinition: (n) =>
    line("definition", n.variable.name.value, "", all(one(n.defaultValue), n.directives)),
  Field: (n) => line("field", n.name.value, text(n.alias), all(n.arguments, n.directives, selections(n))),
  FragmentSpread: (n) => line("spread", n.name.value, "", all(n.directives)),
  InlineFragment: (n) => line("inline", "", on(n), all(n.directives, selections(n))),
  Directive: (n) => line("directive", n.name.value, "", all(n.arguments)),
  Argument: (n) => line("argument", n.name.value, "", dump(n.value)),
  ObjectField: (n) => line("member", n.name.value, "", dump(n.value)),
  Variable: (n) => line("variable", n.name.value, ""),
  IntValue: (n) => line("int", "", hex(n.value)),
  FloatValue: (n) => line("float", "", hex(n.value)),
  StringValue: (n) => line("string", "", hex(n.value)),
  BooleanValue: (n) => line("boolean", "", hex(String(n.value))),
  NullValue: () => line("null", "", ""),
  EnumValue: (n) => line("enum", "", hex(n.value)),
  ListValue: (n) => line("list", "", "", all(n.values)),
  ObjectValue: (n) => line("object", "", "", all(n.fields)),
};

function dump(node) {
  return writers[node.kind](node);
}

function read(source) {
  if (/[\0-\x08\x0b\x0c\x0e-\x1f]/.test(source)) return "-";
  try {
    return dump(parse(source, { noLocation: true }));
  } catch (e) {
    if (e.name === "GraphQLError" || /is not a function/.test(e.message)) return "-";
    throw e;
  }
}

let input = fs.readFileSync(0);
while (input.length > 0) {
  const end = input.indexOf(10);
  const n = Number(input.subarray(0, end).toString());
  console.log(read(input.subarray(end + 1, end + 1 + n).toString()));
  input = input.subarray(end + 1 + n);
}
