package ssh

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// A Parent is the program that has started this one by a [Client].
type Parent struct {
	*sender
	lines chan []byte // nil after the last
}

// ErrGone says that the program that has started this one has ended, or its connection.
var ErrGone = errors.New("the connection to where volley was started has ended")

// Greet tells the parent that messages follow. lost is called once, when the parent has ended or is silent for a minute.
func Greet(input io.Reader, output io.Writer, lost func()) (*Parent, error) {
	p := &Parent{&sender{output: output}, make(chan []byte, 4)}
	report := sync.OnceFunc(lost)
	timer := time.AfterFunc(silence, report)
	end := make(chan struct{})
	go func() {
		defer close(end)
		defer report()
		defer close(p.lines)
		lines := bufio.NewScanner(input)
		lines.Buffer(nil, mostLine)
		for lines.Scan() {
			timer.Reset(silence)
			if len(lines.Bytes()) > 0 {
				p.lines <- append([]byte{}, lines.Bytes()...)
			}
		}
	}()
	err := p.write([]byte(greeting + "\n"))
	go beat(end, p.write)
	return p, err
}

// Receive receives a message. The error is ErrGone after the last one.
func (p *Parent) Receive(v any) error {
	line, ok := <-p.lines
	if !ok {
		return ErrGone
	}
	return json.Unmarshal(line, v)
}

// A sender writes messages, a line for each.
type sender struct {
	mu     sync.Mutex
	output io.Writer
}

// Send sends a message. Goroutines may call it at once.
func (s *sender) Send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(append(text, '\n'))
}

func (s *sender) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.output.Write(line)
	return err
}
