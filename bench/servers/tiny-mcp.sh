# A small MCP server over its standard streams, for many of them at a time: `sh tiny-mcp.sh`.
while IFS= read -r line; do
  id=${line##*'"id":'}
  id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}' ;;
  *'"tools/list"'*) result='{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}' ;;
  *'"tools/call"'*) result='{"content":[{"type":"text","text":"done"}]}' ;;
  *'"server/discover"'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id"
    continue
    ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
