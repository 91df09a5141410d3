// Starts `spak lsp` for .spak files and hands everything else to vscode-languageclient.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
  const [command, ...args] = vscode.workspace.getConfiguration("spak").get("command");
  const server = { command, args };
  const options = {
    documentSelector: [{ language: "spak" }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.spak") },
  };
  client = new LanguageClient("spak", "SPAK", server, options);
  context.subscriptions.push(client);
  try {
    await client.start();
  } catch (error) {
    const hint = "Install SPAK, or set spak.command to where it is.";
    vscode.window.showErrorMessage(`${command} does not start: ${error.message}. ${hint}`);
  }
}

function deactivate() {
  return client?.isRunning() ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
