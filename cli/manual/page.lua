-- A pandoc filter for the manual pages. What the documents say already is taken from there:
--
--   ``` {.include file="docs/reference/environment.md" section="What ddlrun reads"}
--   ```
--
-- is that section without its heading, or without a section the whole document without its title. Their headings rise
-- by one level. The file "help" is what "ddlrun --help markdown" has printed; the metadata have its path. Tables become
-- lists, and links the text that they have.
local stringify = pandoc.utils.stringify
local help = nil

local function section_of(blocks, title)
  local section, depth = pandoc.List(), nil
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and depth and block.level <= depth then break end
    if depth then section:insert(block) end
    if block.t == 'Header' and not depth and (not title or stringify(block) == title) then
      depth = block.level
    end
  end
  assert(#section > 0, 'a manual page has a section that is not there: ' .. (title or ''))
  return section
end

local function included(block)
  if not block.classes:includes('include') then return nil end
  local path = block.attributes.file
  local file = assert(io.open(path == 'help' and help or path))
  local document = pandoc.read(file:read('a'), 'gfm+definition_lists')
  file:close()
  local blocks = section_of(document.blocks, block.attributes.section)
  for _, one in ipairs(blocks) do
    if one.t == 'Header' then one.level = one.level - 1 end
  end
  return blocks
end

-- A row: its first cell and a column "value" are the term, a column "default" ends the text, one for C++ is left out.
local function list_of(table_block)
  local simple = pandoc.utils.to_simple_table(table_block)
  local items = pandoc.List()
  for _, row in ipairs(simple.rows) do
    local term, text = pandoc.utils.blocks_to_inlines(row[1]), pandoc.List()
    for column = 2, #row do
      local heading, cell = stringify(simple.headers[column]), pandoc.utils.blocks_to_inlines(row[column])
      if heading:find('C++', 1, true) then cell = {} end
      if #cell > 0 and heading == 'value' then
        term:extend({ pandoc.Str(':'), pandoc.Space() })
        term:extend(cell)
      elseif #cell > 0 then
        if heading == 'default' then
          cell:insert(1, pandoc.Str('(default: '))
          cell:insert(pandoc.Str(')'))
        end
        if #text > 0 then text:extend({ pandoc.Str(heading == 'default' and '' or ';'), pandoc.Space() }) end
        text:extend(cell)
      end
    end
    items:insert({ term, { { pandoc.Plain(text) } } })
  end
  return pandoc.DefinitionList(items)
end

-- "x ([guide](x.md))." is "x.", and "[guide](x.md)" is "guide".
local function without_links(inlines)
  local plain = pandoc.List()
  local i = 1
  while i <= #inlines do
    local one, link, close = inlines[i], inlines[i + 1], inlines[i + 2]
    if one.t == 'Str' and one.text == '(' and link and link.t == 'Link' and close and close.t == 'Str' and
        close.text:sub(1, 1) == ')' then
      while #plain > 0 and (plain[#plain].t == 'Space' or plain[#plain].t == 'SoftBreak') do plain:remove() end
      plain:insert(pandoc.Str(close.text:sub(2)))
      i = i + 3
    else
      if one.t == 'Link' then plain:extend(one.content) else plain:insert(one) end
      i = i + 1
    end
  end
  return plain
end

return {
  { Meta = function(meta) help = meta.help and stringify(meta.help) end },
  { CodeBlock = included },
  { Table = list_of },
  { Inlines = without_links },
  {
    -- Names and paths are not broken.
    Pandoc = function(page)
      page.blocks:insert(1, pandoc.RawBlock('man', '.nh\n.ad l'))
      return page
    end,
    Header = function(header)
      if header.level > 1 then return nil end
      return header:walk({ Str = function(word) return pandoc.Str(pandoc.text.upper(word.text)) end })
    end
  }
}
