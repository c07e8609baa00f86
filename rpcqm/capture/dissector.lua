-- What the generated tables above declare, dissected: stubs of the interfaces behind Wireshark's
-- own DCE/RPC dissector, and the binary protocol on port 1801.

local proto = Proto("rpcqm", "MSMQ remote procedure calls")
local pf = {
  interface = ProtoField.string("rpcqm.interface", "Interface"),
  opnum = ProtoField.uint32("rpcqm.opnum", "Opnum"),
  method = ProtoField.string("rpcqm.method", "Method"),
  direction = ProtoField.string("rpcqm.direction", "Direction"),
  status = ProtoField.uint32("rpcqm.status", "Status", base.HEX),
  status_name = ProtoField.string("rpcqm.status_name", "Status name"),
  field = ProtoField.string("rpcqm.field", "Field"),
  damaged = ProtoField.string("rpcqm.damaged", "Not decoded"),
}
proto.fields = {
  pf.interface, pf.opnum, pf.method, pf.direction, pf.status, pf.status_name, pf.field, pf.damaged,
}

local f_type = Field.new("dcerpc.pkt_type")
local f_stream = Field.new("tcp.stream")
local f_context = Field.new("dcerpc.cn_ctx_id")
local f_uuid = Field.new("dcerpc.cn_bind_to_uuid")
local f_transfer = Field.new("dcerpc.cn_ack_trans_id")
local f_result = Field.new("dcerpc.cn_ack_result")
local f_opnum = Field.new("dcerpc.opnum")
local f_stub = Field.new("dcerpc.stub_data")
local f_open = Field.new("dcerpc.decrypted_stub_data")
local f_drep = Field.new("dcerpc.drep.byteorder")

local f_last = Field.new("dcerpc.cn_flags.last_frag")

local NDR64 = "71710533-beba-4937-8319-b5dbef9ccc36"
local LIMIT = 20000
local contexts = {} -- [stream .. "/" .. context] = { uuid =, ndr64 = }
local proposed = {} -- [stream] = { { context, uuid } … }

function proto.init()
  contexts, proposed = {}, {}
end

-- The walk over a stub, in the order of the wire.

local Walk = {}
Walk.__index = Walk

local function new_walk(tvb, tree, ndr64, big_endian)
  return setmetatable({
    tvb = tvb, tree = tree, at = 0, deferred = {}, seen = {}, count = 0,
    ndr64 = ndr64, word = ndr64 and 8 or 4, big = big_endian,
  }, Walk)
end

function Walk:align(to)
  self.at = math.floor((self.at + to - 1) / to) * to
end

function Walk:take(size)
  if size < 0 or self.at + size > self.tvb:len() then
    error({ "the stub data end too early at " .. self.at })
  end
  local range = size > 0 and self.tvb(self.at, size) or nil
  self.at = self.at + size
  return range
end

function Walk:uint(range)
  if range:len() == 8 then
    return (self.big and range:uint64() or range:le_uint64()):tonumber()
  end
  return self.big and range:uint() or range:le_uint()
end

function Walk:show(range, path, text)
  self.count = self.count + 1
  if self.count > LIMIT then
    error({ "too many fields" })
  end
  local line = path .. " = " .. text
  if range then
    self.tree:add(pf.field, range, line):set_text(line)
  else
    self.tree:add(pf.field, line):set_text(line)
  end
end

function Walk:number(path)
  self:align(self.word)
  local range = self:take(self.word)
  local value = self:uint(range)
  self:show(range, path, tostring(value))
  return value
end

function Walk:size(t)
  return self.ndr64 and t.size64 or t.size
end

function Walk:alignment(t)
  return self.ndr64 and t.align64 or t.align
end

local function hex(range)
  local text = range:bytes():tohex(true)
  return #text > 64 and text:sub(1, 64) .. "… (" .. range:len() .. " octets)" or text
end

local function guid(range, big)
  local b = range:bytes()
  local function at(...)
    local out = {}
    for _, i in ipairs({ ... }) do
      out[#out + 1] = string.format("%02x", b:get_index(i))
    end
    return table.concat(out)
  end
  local tail = at(8, 9) .. "-" .. at(10, 11, 12, 13, 14, 15)
  if big then
    return at(0, 1, 2, 3) .. "-" .. at(4, 5) .. "-" .. at(6, 7) .. "-" .. tail
  end
  return at(3, 2, 1, 0) .. "-" .. at(5, 4) .. "-" .. at(7, 6) .. "-" .. tail
end

function Walk:scalar(t, path)
  self:align(self:alignment(t))
  local range = self:take(self:size(t))
  if t.k == "guid" then
    self:show(range, path, guid(range, self.big))
    return nil
  elseif t.k == "handle" or t.k == "float" then
    self:show(range, path, hex(range))
    return nil
  end
  local value = self:uint(range)
  local text = t.names and t.names[value] or string.format("%.0f", value)
  self:show(range, path, text)
  return value
end

function Walk:whole(id, path)
  local t, outer = TYPES[id], self.deferred
  self.deferred = {}
  if t.k == "struct" and t.open then
    self:struct(t, path, self:number(path .. ".#maximum"))
  elseif (t.k == "array" or t.k == "string") and t.conformant then
    self:counted(t, path, self:number(path .. ".#maximum"))
  else
    self:inline(id, path)
  end
  while #self.deferred > 0 do
    local waiting = self.deferred
    self.deferred = {}
    for _, each in ipairs(waiting) do
      each()
    end
  end
  self.deferred = outer
end

function Walk:inline(id, path)
  local t = TYPES[id]
  if t.k == "struct" then
    self:struct(t, path, nil)
  elseif t.k == "union" then
    self:union(t, path)
  elseif t.k == "pointer" then
    local identifier = self:number(path .. ".#pointer")
    self.deferred[#self.deferred + 1] = function()
      self:referent(t, identifier, path)
    end
  elseif t.k == "interface" then
    local identifier = self:number(path .. ".#pointer")
    self.deferred[#self.deferred + 1] = function()
      if identifier ~= 0 then
        local maximum = self:number(path .. ".#maximum")
        self:take(4)
        self:show(self:take(maximum), path, "OBJREF")
      end
    end
  elseif t.k == "array" or t.k == "string" then
    self:counted(t, path, t.count or 0)
  else
    self:scalar(t, path)
  end
end

function Walk:referent(t, identifier, path)
  if t.kind ~= "ref" and identifier == 0 then
    return
  end
  if t.kind == "ptr" then
    if self.seen[identifier] then
      return
    end
    self.seen[identifier] = true
  end
  local to = TYPES[t.to]
  if to.k == "pointer" then
    self:referent(to, self:number(path .. ".#pointer"), "*" .. path)
  else
    self:whole(t.to, path)
  end
end

function Walk:struct(t, path, maximum)
  self:align(self:alignment(t))
  for index, field in ipairs(t.fields) do
    local inner, made = path .. "." .. field[1], TYPES[field[2]]
    if index == #t.fields and maximum then
      self:counted(made, inner, maximum)
    else
      self:inline(field[2], inner)
    end
  end
  if self.ndr64 and not maximum then
    self:align(self:alignment(t))
  end
end

function Walk:union(t, path)
  if self.ndr64 then
    self:align(self:alignment(t))
  end
  local tag = self:scalar(TYPES[t.tag], path .. ".#tag")
  local arm = t.arms[tag]
  if arm == nil then
    arm = t.default
  end
  if arm == nil then
    error({ "no arm of " .. t.name .. " has the tag " .. tostring(tag) })
  end
  if self.ndr64 or t.ms_union then
    self:align(self.ndr64 and t.arms_align64 or t.arms_align)
  end
  if arm[2] then
    self:inline(arm[2], path .. "." .. arm[1])
  end
end

function Walk:counted(t, path, count)
  if t.k == "string" or t.varying then
    self:number(path .. ".#offset")
    count = self:number(path .. ".#actual")
  end
  if t.k == "string" then
    self:text(t.size, path, count)
  else
    self:elements(t, path, count)
  end
end

function Walk:text(size, path, count)
  local range = self:take(count * size)
  local text = ""
  if range and size == 2 then
    text = self.big and range:ustring() or range:le_ustring()
  elseif range then
    text = range:string()
  end
  self:show(range, path, '"' .. text .. '"')
end

function Walk:elements(t, path, count)
  local element = TYPES[t.element]
  self:align(self:alignment(element))
  if element.octet then
    local range = self:take(count)
    self:show(range, path, range and hex(range) or "")
  elseif element.character then
    self:text(element.size, path, count)
  else
    for index = 0, count - 1 do
      if self.at > self.tvb:len() then
        error({ path .. " ends too early" })
      end
      self:inline(t.element, path .. "[" .. index .. "]")
    end
  end
end

-- Which interface a request is for.

local function value_of(field)
  return field and field.value
end

local function remember(stream)
  local kinds = { f_type() }
  local kind = value_of(kinds[1])
  if kind == 11 or kind == 14 then
    local ids, uuids = { f_context() }, { f_uuid() }
    proposed[stream] = {}
    for index, uuid in ipairs(uuids) do
      proposed[stream][index] = { value_of(ids[index]), guid(uuid.range, false) }
    end
  elseif (kind == 12 or kind == 15) and proposed[stream] then
    local transfers, results = { f_transfer() }, { f_result() }
    for index, each in ipairs(proposed[stream]) do
      if value_of(results[index]) == 0 then
        local transfer = transfers[index] and guid(transfers[index].range, false)
        contexts[stream .. "/" .. each[1]] = { uuid = each[2], ndr64 = transfer == NDR64 }
      end
    end
  end
end

local function dissect_stub(octets, kind, context, opnum, tree)
  local interface = INTERFACES[context.uuid]
  local operation = interface and interface.operations[opnum]
  if not operation then
    return
  end
  local response = kind == 2
  local tvb = octets:len() > 0 and octets:tvb("Stub data of " .. operation.name) or nil
  local branch = tree:add(proto, tvb and tvb() or nil)
  local which = response and "response" or "request"
  branch:set_text("MSMQ: " .. interface.name .. "." .. operation.name .. " " .. which)
  branch:add(pf.interface, interface.name)
  branch:add(pf.opnum, opnum)
  branch:add(pf.method, operation.name)
  branch:add(pf.direction, which)
  local orders = { f_drep() }
  local walk = new_walk(tvb, branch, context.ndr64, value_of(orders[1]) == 0)
  local ok, problem = pcall(function()
    if not tvb then
      return
    end
    for _, parameter in ipairs(response and operation.response or operation.request) do
      local before = walk.at
      walk:whole(parameter[2], parameter[1])
      if parameter[1] == "result" and parameter[3] then
        local range = tvb(walk.at - 4, 4)
        local status = range:le_uint()
        branch:add(pf.status, range, status)
        branch:add(pf.status_name, range, STATUSES[status] or string.format("0x%08X", status))
      end
      if walk.at == before and walk.at >= tvb:len() then
        break
      end
    end
  end)
  if not ok then
    branch:add(pf.damaged, type(problem) == "table" and problem[1] or tostring(problem))
  end
end

function proto.dissector(tvb, pinfo, tree)
  local stream = value_of(f_stream())
  if stream == nil or f_type() == nil then
    return
  end
  remember(stream)
  local stubs = { f_open() }
  if #stubs == 0 then
    stubs = { f_stub() }
  end
  local kinds, ids, opnums, lasts = { f_type() }, { f_context() }, { f_opnum() }, { f_last() }
  for index, stub in ipairs(stubs) do
    local kind = value_of(kinds[index])
    local context = contexts[stream .. "/" .. tostring(value_of(ids[index]))]
    if (kind == 0 or kind == 2) and context and opnums[index] then
      -- Wireshark shows the whole stub data at the last fragment.
      if value_of(lasts[index]) then
        dissect_stub(stub.value, kind, context, opnums[index].value, tree)
      end
    end
  end
  -- A request without parameters has no stub data.
  if #stubs == 0 and (value_of(kinds[1]) == 0) and opnums[1] then
    local context = contexts[stream .. "/" .. tostring(value_of(ids[1]))]
    local interface = context and INTERFACES[context.uuid]
    local operation = interface and interface.operations[opnums[1].value]
    if operation then
      local branch = tree:add(proto)
      branch:set_text("MSMQ: " .. interface.name .. "." .. operation.name .. " request")
      branch:add(pf.interface, interface.name)
      branch:add(pf.opnum, opnums[1].value)
      branch:add(pf.method, operation.name)
      branch:add(pf.direction, "request")
    end
  end
end

register_postdissector(proto)

-- The binary protocol.

local binary = Proto("rpcqm_mqqb", "MSMQ binary protocol")
local bf = {
  kind = ProtoField.string("rpcqm_mqqb.packet", "Packet"),
  size = ProtoField.uint32("rpcqm_mqqb.size", "Size"),
  label = ProtoField.string("rpcqm_mqqb.label", "Label"),
  field = ProtoField.string("rpcqm_mqqb.field", "Field"),
  body = ProtoField.bytes("rpcqm_mqqb.body", "Body"),
}
binary.fields = { bf.kind, bf.size, bf.label, bf.field, bf.body }

local function header(tvb, at, name, tree)
  for _, field in ipairs(HEADERS[name]) do
    local size = field[2]
    if at + size > tvb:len() then
      return at
    end
    local range = tvb(at, size)
    local text
    if field[3] == "guid" then
      text = guid(range, false)
    elseif field[3] == "number" and size <= 4 then
      text = tostring(range:le_uint())
    else
      text = hex(range)
    end
    local line = name .. "." .. field[1] .. " = " .. text
    tree:add(bf.field, range, line):set_text(line)
    at = at + size
  end
  return at
end

local NAME_SIZES = { [0] = 0, 0, 4, 4, 4, 16, 20 }

local function name_end(tvb, at, kind)
  if kind ~= 7 then
    return at + NAME_SIZES[kind]
  end
  local size = tvb(at, 2):le_uint()
  return at + math.floor((2 + size + 3) / 4) * 4
end

local function security_end(tvb, at)
  local position = at + 16
  for index, place in ipairs({ 2, 4, 6, 8, 12 }) do
    local size = tvb(at + place, index < 4 and 2 or 4):le_uint()
    position = math.floor((position + size + 3) / 4) * 4
  end
  return position
end

local function message(tvb, tree)
  local flags = tvb(60, 4):le_uint()
  local at = header(tvb, 16, "UserHeader", tree)
  for _, name in ipairs({ { "DestinationQueue", 10 }, { "AdminQueue", 13 }, { "ResponseQueue", 16 } }) do
    local stop = name_end(tvb, at, bit32.extract(flags, name[2], 3))
    if stop > at then
      tree:add(bf.field, tvb(at, stop - at), "UserHeader." .. name[1] .. " = " .. hex(tvb(at, stop - at)))
    end
    at = stop
  end
  if bit32.btest(flags, 0x00400000) then
    at = at + 16
  end
  if bit32.btest(flags, 0x00100000) then
    local connector = bit32.btest(tvb(at, 1):uint(), 1)
    at = header(tvb, at, "TransactionHeader", tree) + (connector and 16 or 0)
  end
  if bit32.btest(flags, 0x00080000) then
    header(tvb, at, "SecurityHeader", tree)
    at = security_end(tvb, at)
  end
  local start = at
  at = header(tvb, at, "MessagePropertiesHeader", tree)
  local label = 2 * tvb(start + 1, 1):uint()
  if label > 0 then
    tree:add(bf.label, tvb(at, label), tvb(at, label):le_ustring())
  end
  at = at + label + tvb(start + 52, 4):le_uint()
  local size = tvb(start + 32, 4):le_uint()
  if size > 0 then
    tree:add(bf.body, tvb(at, size))
  end
end

local INTERNAL = { "SessionAck", "EstablishConnection", "ConnectionParameters" }
local INTERNAL_HEADER = { "SessionHeader", "EstablishConnectionHeader", "ConnectionParametersHeader" }

local function packet(tvb, pinfo, tree)
  local branch = tree:add(binary, tvb())
  local flags = tvb(2, 2):le_uint()
  header(tvb, 0, "BaseHeader", branch)
  branch:add(bf.size, tvb(8, 4), tvb:len())
  local kind = "UserMessage"
  if bit32.btest(flags, 8) then
    header(tvb, 16, "InternalHeader", branch)
    local number = bit32.band(tvb(18, 1):uint(), 15)
    kind = INTERNAL[number] or ("InternalPacket " .. number)
    if INTERNAL[number] then
      header(tvb, 20, INTERNAL_HEADER[number], branch)
    end
  else
    local ok, problem = pcall(message, tvb, branch)
    if not ok then
      branch:add(bf.field, "not decoded: " .. tostring(problem))
    end
    if bit32.btest(flags, 16) then
      header(tvb, tvb:len() - 16, "SessionHeader", branch)
    end
  end
  branch:add(bf.kind, kind)
  branch:append_text(": " .. kind)
  pinfo.cols.info:append(" " .. kind)
  return tvb:len()
end

local function frame_size(tvb, pinfo, offset)
  local size, flags = tvb(offset + 8, 4):le_uint(), tvb(offset + 2, 2):le_uint()
  if bit32.btest(flags, 16) and not bit32.btest(flags, 8) then
    size = size + 16
  end
  return math.max(size, 16)
end

function binary.dissector(tvb, pinfo, tree)
  if tvb:len() >= 8 and tvb(4, 4):string() ~= "LIOR" then
    return 0
  end
  pinfo.cols.protocol = "MS-MQQB"
  pinfo.cols.info = "MSMQ"
  dissect_tcp_pdus(tvb, tree, 16, frame_size, packet)
  return tvb:len()
end

DissectorTable.get("tcp.port"):add(1801, binary)
