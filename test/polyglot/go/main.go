// Command polyglot calls a running gateway with grpc-go, as a program of another language does, and says what works.
//
//	go run . 127.0.0.1:7433
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toolgatev1 "toolgate.example/polyglot/gen/toolgate/v1"
)

type gateway struct {
	tools  toolgatev1.ToolGatewayServiceClient
	health healthpb.HealthClient
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: polyglot HOST:PORT")
		os.Exit(2)
	}
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer conn.Close()
	gw := gateway{toolgatev1.NewToolGatewayServiceClient(conn), healthpb.NewHealthClient(conn)}
	checks := []struct {
		name string
		run  func(context.Context, gateway) error
	}{
		{"health is SERVING", checkHealth},
		{"List pages through the tools in order", checkList},
		{"Call returns a structured result", checkCall},
		{"text and binary metadata are taken, and what comes back is the protocol's alone", checkMetadata},
		{"a result of 5 MiB comes cut and marked within the default limit", checkLarge},
		{"a tool that says no is an answer, not an error", checkFailure},
		{"an unknown tool is NOT_FOUND with the nearest name in its details", checkNotFound},
		{"wrong arguments are INVALID_ARGUMENT with a JSON pointer", checkArguments},
		{"CallStream begins with started, has no gaps and ends with completed", checkStream},
		{"cancel ends a stream at once", checkCancel},
		{"the deadline ends a slow call", checkDeadline},
	}
	passed, failed := 0, 0
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := check.run(ctx, gw); err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", check.name, err)
		} else {
			passed++
			fmt.Printf("ok     %s\n", check.name)
		}
		cancel()
	}
	fmt.Printf("go: %d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func invocation(tool, arguments string) *toolgatev1.Invocation {
	return &toolgatev1.Invocation{
		Name:      tool,
		Arguments: &toolgatev1.Invocation_ArgumentsJson{ArgumentsJson: arguments},
	}
}

func (gw gateway) call(ctx context.Context, tool, arguments string) (*toolgatev1.CallResponse, error) {
	return gw.tools.Call(ctx, &toolgatev1.CallRequest{Invocation: invocation(tool, arguments)})
}

// detail finds the status detail of one type.
func detail[T any](err error) (T, error) {
	for _, each := range status.Convert(err).Details() {
		if found, ok := each.(T); ok {
			return found, nil
		}
	}
	var none T
	return none, fmt.Errorf("no %T in the details of %w", none, err)
}

func expectCode(err error, code codes.Code) error {
	if status.Code(err) != code {
		return fmt.Errorf("expected %v, got %w", code, err)
	}
	return nil
}

func checkHealth(ctx context.Context, gw gateway) error {
	answer, err := gw.health.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.Status != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("got %v", answer.Status)
	}
	return nil
}

func checkList(ctx context.Context, gw gateway) error {
	var names []string
	for token := ""; ; {
		page, err := gw.tools.List(ctx, &toolgatev1.ListRequest{PageSize: 3, PageToken: token})
		if err != nil {
			return err
		}
		for _, tool := range page.Tools {
			if len(names) > 0 && names[len(names)-1] >= tool.Name {
				return fmt.Errorf("%s comes after %s", tool.Name, names[len(names)-1])
			}
			names = append(names, tool.Name)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if len(names) < 5 || !strings.Contains(strings.Join(names, " "), "order_status") {
		return fmt.Errorf("got %v", names)
	}
	return nil
}

func checkCall(ctx context.Context, gw gateway) error {
	answer, err := gw.call(ctx, "order_status", `{"order_id":"SO20241001"}`)
	if err != nil {
		return err
	}
	if answer.Result.GetFailure() != nil || !json.Valid([]byte(answer.Result.GetStructuredJson())) {
		return fmt.Errorf("got %v", answer.Result)
	}
	if answer.CallId == "" || answer.Stats.GetAttempts() != 1 {
		return fmt.Errorf("got call id %q and %v", answer.CallId, answer.Stats)
	}
	return nil
}

func checkMetadata(ctx context.Context, gw gateway) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", "blue", "x-trace-bin", "\x00\xff\x80")
	var header, trailer metadata.MD
	request := &toolgatev1.CallRequest{Invocation: invocation("order_status", `{"order_id":"SO20241001"}`)}
	if _, err := gw.tools.Call(ctx, request, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		return err
	}
	for _, name := range []string{"x-tenant", "x-trace-bin", "server", "x-powered-by"} {
		if len(header[name])+len(trailer[name]) > 0 {
			return fmt.Errorf("got %s in %v and %v", name, header, trailer)
		}
	}
	return nil
}

func checkLarge(ctx context.Context, gw gateway) error {
	text := strings.Repeat("0123456789abcde\n", 5<<16)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		io.WriteString(w, text)
	}))
	defer upstream.Close()
	declaration := "name: large\ndescription: 返回很长的文本 gives a very long text\ntype: http\nmethod: GET\nendpoint: " + upstream.URL + "\n"
	if _, err := gw.tools.Register(ctx, &toolgatev1.RegisterRequest{
		Declaration: &toolgatev1.RegisterRequest_DeclarationYaml{DeclarationYaml: declaration},
	}); err != nil {
		return err
	}
	defer gw.tools.Unregister(ctx, &toolgatev1.UnregisterRequest{Name: "large"})
	answer, err := gw.call(ctx, "large", "{}")
	if err != nil {
		return err
	}
	if answer.Result.GetTruncation().GetOriginalLength() != uint64(len(text)) || proto.Size(answer) >= 4<<20 {
		return fmt.Errorf("got %d bytes and %v", proto.Size(answer), answer.Result.GetTruncation())
	}
	return nil
}

func checkFailure(ctx context.Context, gw gateway) error {
	answer, err := gw.call(ctx, "order_status", `{"order_id":"NO-SUCH-ORDER"}`)
	if err != nil {
		return err
	}
	if reason := answer.Result.GetFailure().GetReason(); reason != "TOOL_FAILED" {
		return fmt.Errorf("got %v", answer.Result)
	}
	return nil
}

func checkNotFound(ctx context.Context, gw gateway) error {
	_, err := gw.call(ctx, "ordr_status", `{}`)
	if wrong := expectCode(err, codes.NotFound); wrong != nil {
		return wrong
	}
	info, wrong := detail[*errdetails.ErrorInfo](err)
	if wrong != nil {
		return wrong
	}
	if info.Reason != "TOOL_NOT_FOUND" || info.Domain != "toolgate" || !strings.Contains(fmt.Sprint(info.Metadata), "order_status") {
		return fmt.Errorf("got %v", info)
	}
	own, wrong := detail[*toolgatev1.ToolErrorDetail](err)
	if wrong != nil {
		return wrong
	}
	if own.ModelMessage == "" || own.Effect != toolgatev1.Effect_EFFECT_NONE {
		return fmt.Errorf("got %v", own)
	}
	return nil
}

func checkArguments(ctx context.Context, gw gateway) error {
	_, err := gw.call(ctx, "order_status", `{"order_id":7}`)
	if wrong := expectCode(err, codes.InvalidArgument); wrong != nil {
		return wrong
	}
	bad, wrong := detail[*errdetails.BadRequest](err)
	if wrong != nil {
		return wrong
	}
	if len(bad.FieldViolations) != 1 || bad.FieldViolations[0].Field != "/order_id" {
		return fmt.Errorf("got %v", bad)
	}
	return nil
}

func checkStream(ctx context.Context, gw gateway) error {
	stream, err := gw.tools.CallStream(ctx, &toolgatev1.CallStreamRequest{
		Invocation: invocation("import_progress", `{"import_id":"IM-7","steps":4}`),
	})
	if err != nil {
		return err
	}
	var events []*toolgatev1.CallStreamResponse
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if event.Sequence != uint64(len(events)) {
			return fmt.Errorf("event %d has sequence %d", len(events), event.Sequence)
		}
		events = append(events, event)
	}
	if len(events) < 4 || events[0].GetStarted() == nil || events[len(events)-1].GetCompleted() == nil {
		return fmt.Errorf("got %v", events)
	}
	return nil
}

func checkCancel(ctx context.Context, gw gateway) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := gw.tools.CallStream(ctx, &toolgatev1.CallStreamRequest{
		Invocation: invocation("log_tail", `{"service":"orders"}`),
	})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	if wrong := expectCode(err, codes.Canceled); wrong != nil {
		return wrong
	}
	return checkHealth(context.WithoutCancel(ctx), gw)
}

func checkDeadline(ctx context.Context, gw gateway) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := gw.call(ctx, "slow_report", `{"month":"2024-10","seconds":20}`)
	if wrong := expectCode(err, codes.DeadlineExceeded); wrong != nil {
		return wrong
	}
	if took := time.Since(start); took > 5*time.Second {
		return fmt.Errorf("took %v", took)
	}
	return nil
}
