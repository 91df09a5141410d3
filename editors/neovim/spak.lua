-- SPAK in Neovim: the file type, the language server, a few keys. Copy it to ~/.config/nvim/plugin/spak.lua.
-- Neovim 0.7 and later; colours come from the server (semantic tokens) from 0.9 on.
-- vim.g.spak_command = { "/path/to/spak", "lsp" } before it is loaded says where spak is.

vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  pattern = "*.spak",
  callback = function(event)
    vim.bo[event.buf].filetype = "spak"
  end,
})

local function root(file)
  local found = vim.fs and vim.fs.find({ "spak.toml", ".git" }, { upward = true, path = file })[1]
  return found and vim.fs.dirname(found) or vim.fn.fnamemodify(file, ":p:h")
end

local function keys(buffer)
  local function map(key, action)
    vim.keymap.set("n", key, action, { buffer = buffer })
  end
  map("K", vim.lsp.buf.hover)
  map("gd", vim.lsp.buf.definition)
  map("grr", vim.lsp.buf.references)
  map("grn", vim.lsp.buf.rename)
  map("gra", vim.lsp.buf.code_action)
  vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  vim.bo[buffer].commentstring = "// %s"
  vim.bo[buffer].shiftwidth = 2
  vim.bo[buffer].expandtab = true
end

local started -- the client's id, for Neovim before vim.lsp.start

local function attach(buffer)
  local config = {
    name = "spak",
    cmd = vim.g.spak_command or { "spak", "lsp" },
    root_dir = root(vim.api.nvim_buf_get_name(buffer)),
  }
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = buffer })
  else
    started = started or vim.lsp.start_client(config)
    if started then
      vim.lsp.buf_attach_client(buffer, started)
    end
  end
  keys(buffer)
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = "spak",
  callback = function(event)
    attach(event.buf)
  end,
})
