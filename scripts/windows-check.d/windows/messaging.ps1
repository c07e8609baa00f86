# System.Messaging: messages to the rpcqm and back, reading there, HTTP. check.ps1 loads this file.

$script:answering = $true

function New-Path([string]$path) {
    $queue = New-Object System.Messaging.MessageQueue $path
    $queue.MessageReadPropertyFilter.SetAll()
    return $queue
}

function New-There([string]$name) {
    return New-Path ('FormatName:' + $there + $name)
}

function Set-Anonymous($queue, $entry) {
    # What messages that are not signed may do; the name of the account is another in each language.
    $sid = New-Object System.Security.Principal.SecurityIdentifier 'S-1-5-7'
    $account = $sid.Translate([System.Security.Principal.NTAccount]).Value
    $right = [System.Messaging.MessageQueueAccessRights]::WriteMessage
    $queue.SetPermissions($account, $right, $entry)
}

function New-Local([string]$name, [bool]$transactional) {
    $path = $own + $name
    if ([System.Messaging.MessageQueue]::Exists($path)) {
        [System.Messaging.MessageQueue]::Delete($path)
    }
    [void][System.Messaging.MessageQueue]::Create($path, $transactional)
    $queue = New-Path $path
    Set-Anonymous $queue ([System.Messaging.AccessControlEntryType]::Allow)
    return $queue
}

function New-Letter([string]$label, [string]$text) {
    $message = New-Object System.Messaging.Message
    $octets = $ascii.GetBytes($text)
    $message.BodyStream = New-Object System.IO.MemoryStream
    $message.BodyStream.Write($octets, 0, $octets.Length)
    $message.Label = $label
    $message.Recoverable = $true
    return $message
}

function Give-Order([string]$order) {
    # Further lines of the reply are answers; returns its label, which is the order again.
    if (-not $script:answering) { throw 'not-asked' }
    $script:answering = $false
    $message = New-Letter $order $back
    $message.ResponseQueue = New-Path ('FormatName:' + $back + 'verdicts')
    (New-There 'control').Send($message)
    $patience = [TimeSpan]::FromSeconds(120)
    $reply = $script:verdicts.ReceiveByCorrelationId($message.Id, $patience)
    $script:answering = $true
    $reader = New-Object System.IO.StreamReader ($reply.BodyStream, $ascii)
    foreach ($line in $reader.ReadToEnd().Split([char]10)) {
        if ($line -match '^([A-Z][0-9]{2}) (windows|rpcqm) (.+)$') {
            Add-Answer $matches[1] $matches[2] $matches[3]
        }
    }
    return $reply.Label
}

function Get-Report([string]$name, [bool]$single) {
    # The class of the report on a message to a queue of the other side; nothing if none comes.
    $message = New-Letter 'wcheck reported' ('x' * 4000)
    $message.AdministrationQueue = New-Path ('FormatName:' + $back + 'told')
    $message.AcknowledgeType = [System.Messaging.AcknowledgeTypes]::FullReachQueue
    $message.UseDeadLetterQueue = $true
    $queue = New-There $name
    if ($single) {
        $queue.Send($message, [System.Messaging.MessageQueueTransactionType]::Single)
    } else {
        $queue.Send($message)
    }
    try {
        $report = $script:told.ReceiveByCorrelationId($message.Id, $moment)
    } catch {
        if ((Get-Code $_) -eq '0xC00E001B') { return 'nothing' }
        throw
    }
    return 'class 0x{0:X4}' -f [int]$report.Acknowledgment
}

function Get-LetterCount([string]$label) {
    $letters = New-Path 'FormatName:DIRECT=OS:.\SYSTEM$;DEADLETTER'
    $found = @($letters.GetAllMessages() | Where-Object { $_.Label -eq $label })
    return 'number ' + $found.Count
}

function New-Exchange {
    # The queues of this machine that the other side sends to.
    $script:verdicts = New-Local 'verdicts' $false
    $script:told = New-Local 'told' $false
    [void](New-Local 'plain' $false)
    [void](New-Local 'stream' $true)
    (New-Local 'full' $false).MaximumQueueSize = 1
    (New-Local 'signed' $false).Authenticate = $true
    (New-Local 'private' $false).EncryptionRequired = [System.Messaging.EncryptionRequired]::Body
    $closed = New-Local 'closed' $false
    Set-Anonymous $closed ([System.Messaging.AccessControlEntryType]::Deny)
    [void](New-Local 'web' $false)
}

function Send-Steps([string]$end) {
    # Three messages in a transaction, which ends so.
    $queue = New-There 'stream'
    $transaction = New-Object System.Messaging.MessageQueueTransaction
    $transaction.Begin()
    foreach ($number in 1, 2, 3) {
        $queue.Send((New-Letter ($end + $number) 'x'), $transaction)
    }
    if ($end -eq 'abort') { $transaction.Abort() } else { $transaction.Commit() }
}

function Send-Express {
    # One message with as many properties as can be compared.
    $message = New-Letter 'express' 'two apples'
    $message.Recoverable = $false
    $message.Priority = [System.Messaging.MessagePriority]::Highest
    $message.AppSpecific = 7
    $message.Extension = [byte[]](1, 2, 3)
    $message.TimeToBeReceived = [TimeSpan]::FromSeconds(600)
    $message.ResponseQueue = New-Path ($own + 'told')
    (New-There 'plain').Send($message)
}

function Ask-Exchange {
    New-Exchange
    Ask 'B00' 'rpcqm' { Get-YesNo ((Give-Order 'hello') -eq 'hello') }
    Ask 'B01' 'rpcqm' { Get-Report 'plain' $false }
    Ask 'B02' 'rpcqm' { Get-Report 'absent' $false }
    Ask 'B03' 'rpcqm' { Get-Report 'stream' $false }
    Ask 'B04' 'rpcqm' { Get-Report 'plain' $true }
    Ask 'B05' 'rpcqm' { Get-Report 'full' $false }
    Ask 'B06' 'rpcqm' { Get-Report 'closed' $false }
    Ask 'B07' 'rpcqm' { Get-Report 'signed' $false }
    Ask 'B08' 'rpcqm' { Get-Report 'private' $false }
    Ask 'B09' 'rpcqm' { Get-Report 'stream' $true }
    Ask 'B10' 'windows' { Get-LetterCount 'wcheck reported' }
    Ask 'B11' 'windows' {
        $message = New-Letter 'signed' 'x'
        $message.UseAuthentication = $true
        (New-There 'plain').Send($message)
        'ok'
    }
    Ask 'B12' 'windows' {
        $message = New-Letter 'encrypted' 'x'
        $message.UseEncryption = $true
        (New-There 'plain').Send($message)
        'ok'
    }
    Ask 'B13' 'windows' { Send-Steps 'abort'; Send-Steps 'commit'; 'ok' }
    Ask 'B14' 'windows' { Send-Express; 'ok' }
    Ask 'B20' 'rpcqm' { Get-YesNo ((Give-Order 'arrived') -eq 'arrived') }
    Ask 'B30' 'rpcqm' { Get-YesNo ((Give-Order 'reverse') -eq 'reverse') }
    Ask 'B41' 'windows' { Get-LetterCount 'wcheck back' }
}

function Ask-RemoteReads {
    Ask 'C00' 'rpcqm' { Get-YesNo ((Give-Order 'fill') -eq 'fill') }
    $queue = New-There 'read'
    Ask 'C01' 'rpcqm' { 'text ' + $queue.Peek($moment).Label }
    Ask 'C02' 'rpcqm' { 'number ' + $queue.GetAllMessages().Count }
    Ask 'C03' 'rpcqm' { 'text ' + $queue.Receive($moment).Label }
    Ask 'C04' 'rpcqm' { 'text ' + $queue.ReceiveById($queue.GetAllMessages()[1].Id, $moment).Label }
    Ask 'C05' 'rpcqm' { 'text ' + $queue.ReceiveByLookupId($queue.Peek($moment).LookupId).Label }
    Ask 'C06' 'rpcqm' {
        $cursor = $queue.CreateCursor()
        [void]$queue.Peek($moment, $cursor, [System.Messaging.PeekAction]::Current)
        [void]$queue.Peek([TimeSpan]::Zero, $cursor, [System.Messaging.PeekAction]::Next)
        'ok'
    }
    Ask 'C07' 'rpcqm' { $queue.Purge(); [void]$queue.Receive([TimeSpan]::Zero); 'ok' }
    Ask 'C08' 'rpcqm' { [void](New-There 'absent').Peek($moment); 'ok' }
    Ask 'C09' 'rpcqm' { [void](New-There 'closed').Peek($moment); 'ok' }
    Ask 'C10' 'rpcqm' {
        $transaction = New-Object System.Messaging.MessageQueueTransaction
        $transaction.Begin()
        $found = (New-There 'reads').Receive($moment, $transaction).Label
        $transaction.Abort()
        'text ' + $found
    }
    Ask 'C11' 'rpcqm' { 'text ' + (New-There 'reads').Peek($moment).Label }
    Ask 'C12' 'rpcqm' { 'text ' + (New-There 'read;late').Peek($moment).Label }
    Ask 'C13' 'rpcqm' {
        $found = [System.Messaging.MessageQueue]::GetPrivateQueuesByMachine($Server)
        Get-YesNo ($found.Count -gt 3)
    }
    Ask 'C14' 'rpcqm' {
        $management = New-Object -ComObject 'MSMQ.MSMQManagement'
        [void](Call-Method $management 'Init' $Server $none ($there + 'reads'))
        'number ' + (Read-Member $management 'MessageCount')
    }
    Ask 'C15' 'rpcqm' { Get-YesNo ((Give-Order 'calls') -eq 'calls') }
    Ask 'C20' 'rpcqm' { Get-YesNo ((Give-Order 'delete') -eq 'delete') }
    Ask 'C21' 'rpcqm' { [void]$queue.Receive($moment); 'ok' }
}

function Ask-Web {
    $url = 'FormatName:DIRECT=HTTP://' + $Server + ':' + $Http + '/msmq/private$/wcheck-web'
    Ask 'D01' 'windows' { (New-Path $url).Send((New-Letter 'web' 'two apples')); 'ok' }
    Ask 'D02' 'rpcqm' { Get-YesNo ((Give-Order 'web') -eq 'web') }
}
