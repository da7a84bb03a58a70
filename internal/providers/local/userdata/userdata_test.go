package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "#cloud-config\n"

// documentWithFile is a document with one file, of which lines are the fields.
func documentWithFile(lines ...string) string {
	return header + "write_files:\n- " + strings.Join(lines, "\n  ") + "\n"
}

func gzipBase64(t testing.TB, size int) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestFilesThatAreRead(t *testing.T) {
	hello := "H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==" // gzip of hello
	tests := map[string]struct {
		in   string
		want fileText
	}{
		"only a path":             {documentWithFile("path: /a"), fileText{Path: "/a"}},
		"fields left empty":       {documentWithFile("path: /a", "owner:", "permissions:", "append:", "content:", "encoding: base64"), fileText{Path: "/a"}},
		"path with odd slashes":   {documentWithFile("path: //a/.///b", "content: x"), fileText{Path: "/a/b", Content: "x"}},
		"path with dots in it":    {documentWithFile("path: /a..b/...", "content: x"), fileText{Path: "/a..b/...", Content: "x"}},
		"braces, but no template": {documentWithFile("path: /a", `content: "{{ x }} {% y %} {# z"`), fileText{Path: "/a", Content: "{{ x }} {% y %} {# z"}},
		"base64":                  {documentWithFile("path: /a", "encoding: base64", `content: "aGVs\n bG8=\n"`), fileText{Path: "/a", Content: "hello"}},
		"base64 by other name":    {documentWithFile("path: /a", "encoding: ' B64 '", "content: aGVsbG8="), fileText{Path: "/a", Content: "hello"}},
		"gzip in base64":          {documentWithFile("path: /a", "encoding: gzip+base64", "content: "+hello), fileText{Path: "/a", Content: "hello"}},
		"gzip in base64, short":   {documentWithFile("path: /a", "encoding: gz+b64", "content: "+hello), fileText{Path: "/a", Content: "hello"}},
		"gzip as binary":          {documentWithFile("path: /a", "encoding: gzip", "content: !!binary "+hello), fileText{Path: "/a", Content: "hello"}},
		"plain by name":           {documentWithFile("path: /a", "encoding: text/plain", "content: aGVsbG8="), fileText{Path: "/a", Content: "aGVsbG8="}},
		"a number is text":        {documentWithFile("path: /a", "content: 0640"), fileText{Path: "/a", Content: "0640"}},
		"mode in quotes":          {documentWithFile("path: /a", "permissions: '600'"), fileText{Path: "/a", Mode: "-rw-------"}},
		"mode as octal":           {documentWithFile("path: /a", "permissions: 0600"), fileText{Path: "/a", Mode: "-rw-------"}},
		"mode as new octal":       {documentWithFile("path: /a", "permissions: 0o600"), fileText{Path: "/a", Mode: "-rw-------"}},
		"mode of nobody":          {documentWithFile("path: /a", "permissions: '0000'"), fileText{Path: "/a", Mode: "----------"}},
		"append in old words":     {documentWithFile("path: /a", "append: yes"), fileText{Path: "/a", Append: true}},
		"not append":              {documentWithFile("path: /a", "append: off"), fileText{Path: "/a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.want.Mode == "" {
				tt.want.Mode = "-rw-r--r--"
			}
			d, err := Parse([]byte(tt.in), Metadata{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]fileText{tt.want}, fileTexts(d.Files)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModules(t *testing.T) {
	tests := map[string]struct {
		in   string
		want Data
	}{
		"nothing":                   {header, Data{}},
		"nothing, no end of line":   {"#cloud-config", Data{}},
		"an empty document":         {header + "---\n", Data{}},
		"space before":              {"\n  #Cloud-Config\r\n", Data{}},
		"bootcmd is before runcmd":  {header + "runcmd: [b]\nbootcmd: [a]\n", Data{Commands: []Command{{"bootcmd", "a"}, {"runcmd", "b"}}}},
		"a command of words":        {header + "runcmd:\n- [echo, it's, 1]\n", Data{Commands: []Command{{"runcmd", `'echo' 'it'\''s' '1'`}}}},
		"a command in lines":        {header + "runcmd:\n- |\n  a\n  b\n", Data{Commands: []Command{{"runcmd", `"a\nb"`}}}},
		"a command on one line":     {header + "runcmd:\n- |\n  a\n", Data{Commands: []Command{{"runcmd", "a"}}}},
		"a command for a terminal":  {header + `runcmd: ["\e[2J"]`, Data{Commands: []Command{{"runcmd", `"\x1b[2J"`}}}},
		"commands that are nothing": {header + "runcmd:\n- # later\n- a\nbootcmd:\n", Data{Commands: []Command{{"runcmd", "a"}}}},
		"other modules, sorted":     {header + "ntp: {servers: [a]}\nhostname: a\n\"a\\n\": 1\n", Data{Ignored: []string{`"a\n"`, "hostname", "ntp"}}},
		"modules that ask nothing":  {header + "ntp:\nusers: []\nswap: {}\nfqdn: ''\npackage_update: False\n", Data{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(tt.in), Metadata{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d); diff != "" {
				t.Errorf("Parse() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	bomb := "encoding: gz+b64\n  content: "
	many := func(n int, entry string) string { return header + "write_files:\n" + strings.Repeat(entry, n) }
	tests := map[string]struct{ in, want string }{
		"nothing at all":          {"", "it is not cloud-config"},
		"a script":                {"#!/bin/sh\n", "it is not cloud-config"},
		"an archive":              {"#cloud-config-archive\n", "it is not cloud-config"},
		"Ignition":                {`{"ignition": {"version": "3.4.0"}}`, "it is Ignition, which is not supported"},
		"several parts":           {"Content-Type: multipart/mixed; boundary=x\n\n--x\n", "it is a multi-part MIME message"},
		"too much data":           {header + strings.Repeat("#", maxData), "it has 4194318 bytes, more than the 4194304 allowed"},
		"broken YAML":             {header + "a: b\n c: d\n", "broken YAML: line 3: mapping values are not allowed"},
		"broken YAML after it":    {header + "a: b\n---\n[", "broken YAML: line 4: "},
		"two documents":           {header + "a: b\n---\nc: d\n", "line 3: a second document begins"},
		"a list":                  {header + "- a\n", "line 2: cloud-config is a list, not a mapping"},
		"a key twice":             {header + "runcmd: [a]\nruncmd: [b]\n", "has the key runcmd twice, in lines 2 and 3"},
		"a key that is a list":    {header + "[a]: b\n", "has a list as a key in line 2"},
		"a command with a colon":  {header + "runcmd:\n- a\n- echo a: b\n", "runcmd[1] (line 4) is a mapping, not a command; put it into quotes"},
		"a command of a number":   {header + "bootcmd:\n- 1\n", "bootcmd[0] (line 3) is a number, not a command"},
		"a word that is a list":   {header + "bootcmd:\n- [a, [b]]\n", "bootcmd[0] (line 3) word 1 is a list, not a text"},
		"commands not in a list":  {header + "runcmd: a\n", "line 2: runcmd is a text, not a list"},
		"files not in a list":     {header + "write_files: {path: /a}\n", "line 2: write_files is a mapping, not a list"},
		"a file that is text":     {header + "write_files: [/a]\n", "write_files[0] (line 2): it is a text, not a mapping"},
		"an alias":                {header + "a: &a {path: /a}\nwrite_files: [*a]\n", "write_files[0] (line 3): it is an alias (which is not supported)"},
		"a tag":                   {documentWithFile("path: !x /a"), "write_files[0] (line 3): path has the tag !x, which is not supported"},
		"a file from elsewhere":   {documentWithFile("path: /a", "source: {uri: a}"), "write_files[0] /a (line 3): source is not supported"},
		"no path":                 {documentWithFile("content: x"), "write_files[0] (line 3): it has no path"},
		"relative path":           {documentWithFile("path: etc/x"), "write_files[0] etc/x (line 3): the path is relative"},
		"path of Windows":         {documentWithFile(`path: C:\x`), `write_files[0] C:\x (line 3): the path is relative`},
		"path that leads upwards": {documentWithFile("path: /etc/../../x"), "write_files[0] /etc/../../x (line 3): the path leads upwards"},
		"path with NUL":           {documentWithFile(`path: "/a\0b"`), `write_files[0] "/a\x00b" (line 3): the path has characters that cannot be printed`},
		"path of a directory":     {documentWithFile("path: /etc/"), "the path is that of a directory"},
		"path of the root":        {documentWithFile("path: /."), "the path is that of a directory"},
		"path with a long name":   {documentWithFile("path: /" + strings.Repeat("a", 256)), "the path is too long"},
		"path that is long":       {documentWithFile("path: " + strings.Repeat("/aaa", 257)), "the path is too long"},
		"path of ours":            {documentWithFile("path: /./.userdata.tmp/a"), "the name /.userdata.tmp is reserved"},
		"file below a file": {header + "write_files: [{path: /a}, {path: /b}, {path: /a/b/c}]",
			"write_files[2] /a/b/c (line 2): its directory /a is an earlier file"},
		"file that is a directory": {header + "write_files: [{path: /a/b/c}, {path: /a}]",
			"write_files[1] /a (line 2): an earlier file has this path as its directory"},
		"mode in decimal":  {documentWithFile("path: /a", "permissions: 640"), "write_files[0] /a (line 3): permissions 640 is a decimal number"},
		"mode in words":    {documentWithFile("path: /a", "permissions: u=rw"), `permissions "u=rw" is not an octal mode`},
		"mode with setuid": {documentWithFile("path: /a", "permissions: '4755'"), `permissions "4755" is not an octal mode up to 0777`},
		"append to what":   {documentWithFile("path: /a", "append: /b"), "append is /b, not true or false"},
		"unknown encoding": {documentWithFile("path: /a", "encoding: rot13", "content: x"), "write_files[0] /a (line 3): encoding rot13 is not known"},
		"not base64": {documentWithFile("path: /a", "encoding: base64", "content: a secret"),
			"write_files[0] /a (line 3): content is not base64: illegal base64 data at input byte"},
		"not gzip":               {documentWithFile("path: /a", "encoding: gzip", "content: a secret"), "content is not gzip"},
		"gzip that ends early":   {documentWithFile("path: /a", "encoding: gz+b64", "content: H4sIAAAAAAACA8tIzck="), "content is not gzip: unexpected EOF"},
		"content that is a list": {documentWithFile("path: /a", "content: [a secret]"), "content is a list, not a text"},
		"a gzip bomb": {documentWithFile("path: /a", bomb+gzipBase64(t, maxContent+1)),
			"write_files[0] /a (line 3): the files up to this one have more than the 16777216 bytes"},
		"a bomb in two files": {many(2, "- path: /a\n  "+bomb+gzipBase64(t, maxContent/2+1)+"\n"),
			"write_files[1] /a (line 6): the files up to this one have more than"},
		"too many files": {many(maxFiles+1, "- path: /a\n"), "line 3: write_files has 1001 files, more than the 1000 allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(tt.in), Metadata{})
			if err == nil || !strings.HasPrefix(err.Error(), "reading user data: ") || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Parse() = %v, want a refusal with %q", err, tt.want)
			}
			if diff := cmp.Diff(Data{}, d); diff != "" {
				t.Errorf("a refusal comes with data:\n%s", diff)
			}
			if strings.Contains(err.Error(), "secret") || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("the refusal shows content or is not a line: %q", err)
			}
		})
	}
}

func TestLimitsThemselvesAreAllowed(t *testing.T) {
	var b strings.Builder
	b.WriteString(header + "write_files:\n")
	for i := range maxFiles - 1 {
		fmt.Fprintf(&b, "- path: /%d\n", i)
	}
	fmt.Fprintf(&b, "- path: /last\n  encoding: gz+b64\n  content: %s\n#", gzipBase64(t, maxContent))
	b.WriteString(strings.Repeat("#", maxData-b.Len()))
	d, err := Parse([]byte(b.String()), Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Files[len(d.Files)-1]; len(d.Files) != maxFiles || len(last.Content) != maxContent {
		t.Errorf("%d files, the last with %d bytes", len(d.Files), len(last.Content))
	}
}

// Aliases would make gigabytes of this: each of a hundred thousand commands is half a megabyte.
func TestAliasesAreNotExpanded(t *testing.T) {
	in := header + "a: &a " + strings.Repeat("x", 1<<19) + "\nb:\n" + strings.Repeat("- *a\n", 100_000)
	d, err := Parse([]byte(in), Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, d.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}
