-- What wrk sends: questions whether the service lives, decisions, outcomes of decisions that it has seen, or the last two
-- in turn. MODE says which; ids are kept in files of the folder IDS, one for each thread.
local mode, folder = os.getenv("MODE"), os.getenv("IDS")
local key = os.getenv("KEY")
local threads = 0

function setup(thread)
  thread:set("own", threads)
  threads = threads + 1
end

function init()
  math.randomseed(own + 1)
  headers = { ["Content-Type"] = "application/json" }
  if key then headers["Authorization"] = "Bearer " .. key end
  waiting, bad = {}, 0
  path = folder .. "/" .. own
  if mode == "select" then file = io.open(path, "w") end
  if mode == "outcome" then
    for line in io.lines(path) do waiting[#waiting + 1] = line end
  end
end

local function decide()
  local values = {}
  for i = 1, 8 do values[i] = string.format("%.6f", math.random()) end
  local body = '{"k":4,"context":[' .. table.concat(values, ",") .. "]}"
  return wrk.format("POST", "/v1/preselectors/bench/decisions", headers, body)
end

local function tell()
  local id, winner = table.remove(waiting):match("^(%S+) (.*)$")
  return wrk.format("PUT", "/v1/decisions/" .. id .. "/outcome", headers, '{"winner":"' .. winner .. '"}')
end

function request()
  if mode == "health" then return wrk.format("GET", "/healthz") end
  if mode ~= "select" and #waiting > 0 then return tell() end
  if mode == "outcome" then
    wrk.thread:stop()
    return wrk.format("GET", "/healthz")
  end
  return decide()
end

function response(status, _, body)
  if status ~= 201 and not (mode ~= "select" and mode ~= "both" and status == 200) then bad = bad + 1 end
  local id, winner = body:match('^{"id":"(%w+)".-"names":%["(.-)"')
  if id == nil then return end
  if mode == "select" then file:write(id, " ", winner, "\n") else waiting[#waiting + 1] = id .. " " .. winner end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"p50":%.6f,"p99":%.6f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, failed))
end
