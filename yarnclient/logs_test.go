package yarnclient

import (
	"net/http"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

const framedLog = "Container: container_1_0001_01_000002 on 127.0.0.2_1\nLogAggregationType: LOCAL\n=====\nLogType:stdout\n" +
	"LogLastModifiedTime:Mon Nov 30\nLogLength:22\nLogContents:\none\nEnd of LogType:x\ntwo\n\nEnd of LogType:stdout.This log file belongs to a running container.\n***\n\n"

func TestContainerLog(t *testing.T) {
	id := yarnid.Container{Attempt: yarnid.Attempt{App: yarnid.Application{Cluster: 1, Number: 1}, Number: 1}, Number: 2}
	s := rm(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws/v1/node/containers/"+id.String()+"/logs/stdout" || r.URL.Query().Get("size") != "-100" {
			w.WriteHeader(404)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(framedLog))
	})
	c := client(t, Config{Auth: UserName("alice")}, s)
	host := strings.TrimPrefix(s.URL, "http://")
	if got, err := c.ContainerLog(t.Context(), host, id, "stdout", 100); err != nil || got != "one\nEnd of LogType:x\ntwo\n\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := c.ContainerLog(t.Context(), host, id, "stderr", 100); !IsUnknown(err) {
		t.Errorf("a log that is not: %v", err)
	}
	if got := logContents("no frame"); got != "no frame" {
		t.Errorf("without a frame: %q", got)
	}
}
