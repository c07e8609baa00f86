# What is asked of this machine alone: formatters, moves, counters, permissions. check.ps1 loads this file.

function Get-Octets($formatter, $value) {
    $message = New-Object System.Messaging.Message
    $formatter.Write($message, $value)
    $memory = New-Object System.IO.MemoryStream
    $message.BodyStream.Position = 0
    $message.BodyStream.CopyTo($memory)
    return 'octets ' + $message.BodyType + ' ' + (Get-Hex $memory.ToArray())
}

function Get-Value($formatter, [int]$type, [byte[]]$octets) {
    $message = New-Object System.Messaging.Message
    $message.BodyStream = New-Object System.IO.MemoryStream
    $message.BodyStream.Write($octets, 0, $octets.Length)
    $message.BodyStream.Position = 0
    $message.BodyType = $type
    return Get-Said ($formatter.Read($message))
}

function Get-Xml([type]$type, [string]$element) {
    # What the formatter for a type reads of a document that rpcqm writes.
    $formatter = New-Object System.Messaging.XmlMessageFormatter
    $formatter.TargetTypes = [type[]]@($type)
    return Get-Value $formatter 0 ($ascii.GetBytes('<?xml version="1.0"?>' + $element))
}

function Get-Typed([int]$type, [byte[]]$octets) {
    # What ActiveXMessageFormatter reads of octets of a type that rpcqm writes.
    return Get-Value (New-Object System.Messaging.ActiveXMessageFormatter) $type $octets
}

function Ask-Written {
    $noon = [datetime]::SpecifyKind([datetime]'2026-05-26T20:00:00', [System.DateTimeKind]::Utc)
    $local = [datetime]'2026-05-26T20:00:00'
    $money = [decimal]::Parse('12.50', $plainCulture)
    $octets = [byte[]](0, 1, 255)
    $strange = 'a' + [char]0x1D + 'b'
    $days = [TimeSpan]::FromDays(2)
    $fixed = [guid]'0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0'
    $xml = New-Object System.Messaging.XmlMessageFormatter
    Ask 'E01' 'windows' { Get-Octets $xml 'two apples' }
    Ask 'E02' 'windows' { Get-Octets $xml 42 }
    Ask 'E03' 'windows' { Get-Octets $xml ([double]1.5) }
    Ask 'E04' 'windows' { Get-Octets $xml $true }
    Ask 'E05' 'windows' { Get-Octets $xml $noon }
    Ask 'E06' 'windows' { Get-Octets $xml $money }
    Ask 'E07' 'windows' { Get-Octets $xml $octets }
    Ask 'E08' 'windows' { Get-Octets $xml $strange }
    Ask 'E09' 'windows' { Get-Octets $xml ([int[]](1, 2)) }
    Ask 'E10' 'windows' { Get-Octets $xml '  ' }
    Ask 'E11' 'windows' { Get-Octets $xml $days }
    $active = New-Object System.Messaging.ActiveXMessageFormatter
    Ask 'E20' 'windows' { Get-Octets $active 'two apples' }
    Ask 'E21' 'windows' { Get-Octets $active 42 }
    Ask 'E22' 'windows' { Get-Octets $active ([long]42) }
    Ask 'E23' 'windows' { Get-Octets $active ([double]1.5) }
    Ask 'E24' 'windows' { Get-Octets $active $true }
    Ask 'E25' 'windows' { Get-Octets $active $local }
    Ask 'E26' 'windows' { Get-Octets $active $money }
    Ask 'E27' 'windows' { Get-Octets $active $octets }
    Ask 'E28' 'windows' { Get-Octets $active ([byte]42) }
    Ask 'E29' 'windows' { Get-Octets $active $fixed }
    $binary = New-Object System.Messaging.BinaryMessageFormatter
    Ask 'E30' 'windows' { Get-Octets $binary 'two apples' }
    Ask 'E31' 'windows' { Get-Octets $binary 42 }
    Ask 'E32' 'windows' { Get-Octets $binary $noon }
    Ask 'E33' 'windows' { Get-Octets $binary $money }
    Ask 'E34' 'windows' { Get-Octets $binary $days }
    Ask 'E35' 'windows' { Get-Octets $binary $fixed }
    Ask 'E36' 'windows' { Get-Octets $binary ([int[]](1, 2)) }
}

function Ask-Read {
    $names = ' xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
    $names = $names + ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    Ask 'E50' 'windows' { Get-Xml ([string]) '<string>two apples</string>' }
    Ask 'E51' 'windows' { Get-Xml ([int]) '<int>42</int>' }
    Ask 'E52' 'windows' { Get-Xml ([long]) '<long>42</long>' }
    Ask 'E53' 'windows' { Get-Xml ([int]) '<long>42</long>' }
    Ask 'E54' 'windows' { Get-Xml ([datetime]) '<dateTime>2026-05-26T20:00:00Z</dateTime>' }
    Ask 'E55' 'windows' { Get-Xml ([decimal]) '<decimal>12.50</decimal>' }
    Ask 'E56' 'windows' { Get-Xml ([byte[]]) '<base64Binary>AAH/</base64Binary>' }
    Ask 'E57' 'windows' {
        Get-Xml ([int[]]) ('<ArrayOfInt' + $names + '><int>1</int><int>2</int></ArrayOfInt>')
    }
    Ask 'E58' 'windows' { Get-Xml ([string]) '<string>a&#x1D;b</string>' }
    Ask 'E59' 'windows' { Get-Xml ([string]) ('<string' + $names + ' xsi:nil="true" />') }
    Ask 'E60' 'windows' { Get-Xml ([string]) '<string xml:space="preserve">  </string>' }
    Ask 'E70' 'windows' { Get-Typed 8 ([byte[]](116, 0, 119, 0, 111, 0)) }
    Ask 'E71' 'windows' { Get-Typed 3 ([byte[]](42, 0, 0, 0)) }
    Ask 'E72' 'windows' { Get-Typed 5 ([byte[]](0, 0, 0, 0, 0, 0, 248, 63)) }
    Ask 'E73' 'windows' { Get-Typed 11 ([byte[]](255, 255)) }
    Ask 'E74' 'windows' { Get-Typed 7 ([byte[]](0, 0, 0, 0, 16, 139, 230, 64)) }
    Ask 'E75' 'windows' { Get-Typed 6 ([byte[]](72, 232, 1, 0, 0, 0, 0, 0)) }
    Ask 'E76' 'windows' { Get-Typed 0 ([byte[]](0, 1, 255)) }
    Ask 'E77' 'windows' { Get-Typed 4113 ([byte[]](0, 1, 255)) }
    Ask 'E78' 'windows' { Get-Typed 20 ([byte[]](42, 0, 0, 0, 0, 0, 0, 0)) }
}

function Ask-Formatters {
    Start-Part 'written bodies' { Ask-Written }
    Start-Part 'read bodies' { Ask-Read }
}

# Messages that are moved, for which neither System.Messaging nor the objects have a method

$moving = '
using System;
using System.Runtime.InteropServices;

public static class WindowsCheck
{
    [DllImport("mqrt.dll", CharSet = CharSet.Unicode)]
    static extern int MQOpenQueue(string name, int access, int share, out IntPtr queue);

    [DllImport("mqrt.dll")]
    static extern int MQCloseQueue(IntPtr queue);

    [DllImport("mqrt.dll")]
    static extern int MQMoveMessage(IntPtr from, IntPtr to, ulong identifier, IntPtr transaction);

    public static int Move(string from, string to, ulong identifier)
    {
        IntPtr source, target;
        int result = MQOpenQueue(from, 1, 0, out source);
        if (result != 0) return result;
        result = MQOpenQueue(to, 4, 0, out target);
        if (result == 0)
        {
            result = MQMoveMessage(source, target, identifier, IntPtr.Zero);
            MQCloseQueue(target);
        }
        MQCloseQueue(source);
        return result;
    }
}
'

function Get-Moved([string]$from, [string]$to, [long]$identifier) {
    $name = 'DIRECT=OS:.\private$\wcheck-'
    $result = [WindowsCheck]::Move($name + $from, $name + $to, [uint64]$identifier)
    if ($result -eq 0) { return 'ok' }
    return '0x{0:X8}' -f $result
}

function Ask-Moves {
    Add-Type -TypeDefinition $moving
    $queue = New-Local 'moves' $false
    [void](New-Local 'other' $false)
    foreach ($number in 1, 2) { $queue.Send((New-Letter 'to be moved' 'x')) }
    $first = $queue.Peek($moment).LookupId
    Ask 'W01' 'windows' { Get-Moved 'moves' 'moves;late' $first }
    Ask 'W02' 'windows' { Get-Moved 'moves' 'moves' ($queue.Peek($moment).LookupId) }
    Ask 'W03' 'windows' { Get-Moved 'moves' 'moves;late' 1 }
    Ask 'W04' 'windows' { Get-Moved 'moves' 'other' ($queue.Peek($moment).LookupId) }
    Ask 'W05' 'windows' { Get-Moved 'moves;late' 'moves;later' $first }
    Ask 'W06' 'windows' { Get-Moved 'moves' 'moves;JOURNAL' ($queue.Peek($moment).LookupId) }
}

function Ask-Counters {
    $counters = @(Get-WmiObject -Class 'Win32_PerfRawData_MSMQ_MSMQQueue')
    Ask 'W10' 'windows' {
        Get-YesNo (@($counters | Where-Object { $_.Name -eq 'Computer Queues' }).Count -eq 1)
    }
    Ask 'W11' 'windows' {
        $names = @($counters | Where-Object { $_.Name -like '*wcheck-moves' })
        'text ' + (Get-Text $names[0].Name)
    }
    Ask 'W12' 'windows' {
        $names = @($counters | Where-Object { $_.Name -like '*wcheck.invalid*' })
        'text ' + (Get-Text $names[0].Name)
    }
}

function Ask-Permissions {
    Ask 'W20' 'windows' {
        $queue = Get-MsmqQueue -Name 'wcheck-moves' -QueueType Private
        $entry = @(Get-MsmqQueueACL -InputObject $queue)[0]
        'text ' + $entry.Access + '=' + [int]$entry.Access
    }
}

function Ask-Machine {
    Start-Part 'moves' { Ask-Moves }
    Start-Part 'counters' { Ask-Counters }
    Start-Part 'permissions' { Ask-Permissions }
}
