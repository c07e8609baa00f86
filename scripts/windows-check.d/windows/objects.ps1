# COM objects, by late binding: those of this machine, and those of the rpcqm by DCOM. check.ps1
# loads this file.

function Use-Member($object, [string]$name, $flags, $given) {
    $plain = New-Object object[] $given.Count
    for ($index = 0; $index -lt $given.Count; $index++) {
        if ($null -ne $given[$index]) { $plain[$index] = $given[$index].PSObject.BaseObject }
    }
    $result = [System.__ComObject].InvokeMember($name, $flags, $null, $object, $plain)
    return , $result
}

function Call-Method($object, [string]$name) {
    return , (Use-Member $object $name ([System.Reflection.BindingFlags]::InvokeMethod) $args)
}

function Read-Member($object, [string]$name) {
    return , (Use-Member $object $name ([System.Reflection.BindingFlags]::GetProperty) @())
}

function Write-Member($object, [string]$name) {
    [void](Use-Member $object $name ([System.Reflection.BindingFlags]::SetProperty) $args)
}

function New-Thing([string]$of, [string]$class) {
    if ($of -eq 'windows') { return New-Object -ComObject ('MSMQ.' + $class) }
    $type = [Type]::GetTypeFromProgID('MSMQ.' + $class, $Server, $true)
    return [Activator]::CreateInstance($type)
}

function New-Info([string]$of, [string]$name) {
    $info = New-Thing $of 'MSMQQueueInfo'
    Write-Member $info 'PathName' ($own + $name)
    return $info
}

function New-Named([string]$of, [string]$formatName) {
    $info = New-Thing $of 'MSMQQueueInfo'
    Write-Member $info 'FormatName' $formatName
    return $info
}

function New-Queue([string]$of, [string]$name, [bool]$transactional) {
    try { [void](Call-Method (New-Info $of $name) 'Delete') } catch { Write-Verbose $name }
    $info = New-Info $of $name
    [void](Call-Method $info 'Create' $transactional $false)
    return $info
}

function Open-Queue([string]$of, [string]$name, [int]$access, [int]$share) {
    return Call-Method (New-Info $of $name) 'Open' $access $share
}

function New-Message([string]$of, [string]$label) {
    $message = New-Thing $of 'MSMQMessage'
    Write-Member $message 'Label' $label
    return $message
}

function Send-Body([string]$of, [string]$name, $body, $transaction) {
    $queue = Open-Queue $of $name 2 0
    $message = New-Message $of 'body'
    if ($null -ne $body) { Write-Member $message 'Body' $body }
    [void](Call-Method $message 'Send' $queue $transaction)
    [void](Call-Method $queue 'Close')
    return $message
}

function Receive-First([string]$of, [string]$name) {
    $queue = Open-Queue $of $name 1 0
    $message = Call-Method $queue 'Receive' $none $none $none 5000
    [void](Call-Method $queue 'Close')
    return $message
}

function Get-BodyBack([string]$of, $body) {
    [void](Send-Body $of 'bodies' $body $none)
    return Get-Said (Read-Member (Receive-First $of 'bodies') 'Body')
}

function Get-ClassAfter([string]$of, [string]$name, [int]$seconds, [scriptblock]$then) {
    # The class of the first report on a message, once something was done to its queue.
    $reports = New-Queue $of 'reports' $false
    $message = New-Message $of 'reported'
    Write-Member $message 'Ack' 14
    Write-Member $message 'AdminQueueInfo' $reports
    if ($seconds -gt 0) { Write-Member $message 'MaxTimeToReceive' $seconds }
    $queue = Open-Queue $of $name 2 0
    $transaction = $none
    if ($name -eq 'steps') { $transaction = 3 }
    [void](Call-Method $message 'Send' $queue $transaction)
    [void](Call-Method $queue 'Close')
    [void](& $then)
    return 'class 0x{0:X4}' -f [int](Read-Member (Receive-First $of 'reports') 'Class')
}

function Get-Number($object, [string]$value, [int]$most) {
    # The number of the member whose value this is.
    for ($number = 1; $number -le $most; $number++) {
        try { $found = Read-Member $object ('[DISPID=' + $number + ']') } catch { $found = $null }
        if ([string]$found -eq $value) { return 'number ' + $number }
    }
    return 'nothing'
}

function Ask-Names([string]$of) {
    Ask 'A01' $of { [void](New-Queue $of 'one' $false); 'ok' }
    Ask 'A02' $of { [void](Call-Method (New-Info $of 'one') 'Create' $false $false); 'ok' }
    Ask 'A03' $of { [void](Call-Method (New-Info $of 'a,b') 'Create' $false $false); 'ok' }
    Ask 'A04' $of {
        [void](Call-Method (New-Info $of ('x' * 118)) 'Create' $false $false)
        'ok'
    }
    Ask 'A05' $of {
        $info = New-Info $of 'label'
        Write-Member $info 'Label' ('x' * 125)
        [void](Call-Method $info 'Create' $false $false)
        'ok'
    }
    Ask 'A06' $of {
        $info = New-Info $of 'type'
        Write-Member $info 'ServiceTypeGuid' 'none'
        [void](Call-Method $info 'Create' $false $false)
        'ok'
    }
    Ask 'A07' $of {
        $name = Read-Member (New-Info $of 'one') 'FormatName'
        'text ' + $name.Substring(0, $name.IndexOf('='))
    }
    Ask 'A08' $of { Get-YesNo ((Read-Member (New-Info $of 'new') 'PathName') -eq ($own + 'new')) }
    Ask 'A09' $of { [void](Open-Queue $of 'absent' 1 0); 'ok' }
    Ask 'A10' $of { [void](Call-Method (New-Info $of 'absent') 'Delete'); 'ok' }
    Ask 'A11' $of { [void](Call-Method (New-Named $of 'DIRECT=XX:1') 'Open' 2 0); 'ok' }
    Ask 'A12' $of { [void](Open-Queue $of 'one' 3 0); 'ok' }
    Ask 'A13' $of { [void](Open-Queue $of 'one' 2 1); 'ok' }
    Ask 'A14' $of {
        [void](Call-Method (New-Named $of 'MULTICAST=234.1.1.1:8001') 'Open' 2 0)
        'ok'
    }
    $umlaut = [string][char]0xE4
    Ask 'A15' $of {
        [void](New-Queue $of $umlaut $false)
        [void](Open-Queue $of ([string][char]0xC4) 2 0)
        'ok'
    }
    Ask 'A16' $of {
        [void](New-Queue $of ([string][char]0xDF) $false)
        [void](Open-Queue $of 'ss' 2 0)
        'ok'
    }
    Ask 'A17' $of { 'number ' + (Read-Member (New-Info $of 'one') 'Quota') }
    Ask 'A18' $of {
        $message = New-Message $of 'a label of its own'
        Get-Number $message 'a label of its own' 120
    }
    Ask 'A19' $of { Get-Number (New-Info $of 'new') ($own + 'new') 60 }
}

function Ask-Sharing([string]$of) {
    $first = Open-Queue $of 'one' 1 1
    Ask 'A20' $of { [void](Open-Queue $of 'one' 1 0); 'ok' }
    Ask 'A21' $of { [void](Call-Method (Open-Queue $of 'one' 2 0) 'Close'); 'ok' }
    Ask 'A22' $of { [void](Call-Method (Open-Queue $of 'one' 32 0) 'Close'); 'ok' }
    [void](Call-Method $first 'Close')
}

function Ask-Reading([string]$of) {
    $queue = Open-Queue $of 'one' 1 0
    Ask 'A30' $of { Get-Said (Call-Method $queue 'Receive' $none $none $none 0) }
    Ask 'A31' $of { Get-Said (Call-Method $queue 'Peek' $none $none 0) }
    Ask 'A32' $of { Get-Said (Call-Method $queue 'PeekNext' $none $none 0) }
    [void](Send-Body $of 'one' 'x' $none)
    Ask 'A33' $of {
        [void](Call-Method $queue 'PeekCurrent' $none $none 5000)
        Get-Said (Call-Method $queue 'PeekNext' $none $none 0)
    }
    Ask 'A34' $of { Get-Said (Call-Method $queue 'ReceiveByLookupId' '1') }
    Ask 'A35' $of { [void](Call-Method $queue 'Receive' 'text' $none $none 0); 'ok' }
    Ask 'A36' $of {
        [void](Call-Method $queue 'Receive' $none $none $none ([double]4294967996))
        'ok'
    }
    Ask 'A37' $of { [void](Call-Method (New-Message $of 'wrong way') 'Send' $queue); 'ok' }
    [void](Call-Method $queue 'Close')
    Ask 'A38' $of { [void](Call-Method $queue 'Receive' $none $none $none 0); 'ok' }
    Ask 'A39' $of { 'number ' + (Read-Member $queue 'Access') }
    Ask 'A40' $of {
        [void](Call-Method (Open-Queue $of 'one' 2 0) 'Receive' $none $none $none 0)
        'ok'
    }
    Ask 'A41' $of {
        $open = Call-Method (New-Queue $of 'going' $false) 'Open' 1 0
        [void](Call-Method (New-Info $of 'going') 'Delete')
        [void](Call-Method $open 'Receive' $none $none $none 0)
        'ok'
    }
    Ask 'A42' $of { Get-Said (Read-Member (New-Message $of 'x') 'ResponseQueueInfo') }
}

function Ask-Bodies([string]$of) {
    [void](New-Queue $of 'bodies' $false)
    Ask 'A50' $of { Get-BodyBack $of 'two apples' }
    Ask 'A51' $of { Get-BodyBack $of 42 }
    Ask 'A52' $of { Get-BodyBack $of ([int16]42) }
    Ask 'A53' $of { Get-BodyBack $of ([double]1.5) }
    Ask 'A54' $of { Get-BodyBack $of $true }
    Ask 'A55' $of { Get-BodyBack $of ([datetime]'2026-05-26T20:00:00') }
    Ask 'A56' $of {
        Get-BodyBack $of (New-Object System.Runtime.InteropServices.CurrencyWrapper ([decimal]12.5))
    }
    Ask 'A57' $of { Get-BodyBack $of ([byte[]](0, 1, 255)) }
    Ask 'A58' $of { Get-BodyBack $of $null }
}

function Ask-Transactions([string]$of) {
    [void](New-Queue $of 'steps' $true)
    $dispenser = New-Thing $of 'MSMQTransactionDispenser'
    Ask 'A60' $of { [void](Send-Body $of 'steps' 'x' 0); 'ok' }
    Ask 'A61' $of { [void](Send-Body $of 'steps' 'x' 3); 'ok' }
    Ask 'A62' $of { [void](Send-Body $of 'one' 'x' 3); 'ok' }
    Ask 'A63' $of { [void](Send-Body $of 'one' 'x' 'text'); 'ok' }
    Ask 'A64' $of {
        $transaction = Call-Method $dispenser 'BeginTransaction'
        [void](Call-Method $transaction 'Commit')
        [void](Call-Method $transaction 'Commit')
        'ok'
    }
    Ask 'A65' $of {
        $transaction = Call-Method $dispenser 'BeginTransaction'
        $queue = Open-Queue $of 'steps' 1 0
        [void](Call-Method $queue 'Receive' $transaction $none $none 5000)
        [void](Call-Method $transaction 'Abort')
        [void](Call-Method $queue 'Receive' $none $none $none 5000)
        [void](Call-Method $queue 'Close')
        'ok'
    }
    Ask 'A66' $of {
        Get-ClassAfter $of 'steps' 0 {
            $transaction = Call-Method $dispenser 'BeginTransaction'
            $queue = Open-Queue $of 'steps' 1 0
            [void](Call-Method $queue 'Receive' $transaction $none $none 5000)
            [void](Call-Method $queue 'Purge')
            [void](Call-Method $transaction 'Abort')
            [void](Call-Method $queue 'Close')
        }
    }
}

function Ask-Sending([string]$of) {
    Ask 'A70' $of {
        $message = New-Message $of 'time'
        Write-Member $message 'MaxTimeToReceive' 5
        $queue = Open-Queue $of 'one' 2 0
        [void](Call-Method $message 'Send' $queue)
        [void](Call-Method $queue 'Close')
        'number ' + (Read-Member $message 'MaxTimeToReachQueue')
    }
    Ask 'A71' $of { Write-Member (New-Message $of 'x') 'Priority' 9; 'ok' }
    Ask 'A72' $of {
        $message = New-Message $of 'signed'
        Write-Member $message 'AuthLevel' 1
        [void](Call-Method $message 'Send' (Open-Queue $of 'one' 2 0))
        'ok'
    }
    Ask 'A73' $of {
        $message = New-Message $of 'private'
        Write-Member $message 'PrivLevel' 1
        [void](Call-Method $message 'Send' (Open-Queue $of 'one' 2 0))
        'ok'
    }
    Ask 'A74' $of { [void](Send-Body $of 'one' (New-Object byte[] 4250000) $none); 'ok' }
    Ask 'A75' $of {
        $info = New-Queue $of 'small' $false
        Write-Member $info 'Quota' 1
        [void](Call-Method $info 'Update')
        [void](Send-Body $of 'small' (New-Object byte[] 4000) $none)
        'ok'
    }
}

function Ask-Reports([string]$of) {
    Ask 'A80' $of {
        [void](New-Queue $of 'taken' $false)
        Get-ClassAfter $of 'taken' 0 { Receive-First $of 'taken' }
    }
    Ask 'A81' $of {
        [void](New-Queue $of 'purged' $false)
        Get-ClassAfter $of 'purged' 0 { Call-Method (Open-Queue $of 'purged' 1 0) 'Purge' }
    }
    Ask 'A82' $of {
        [void](New-Queue $of 'deleted' $false)
        Get-ClassAfter $of 'deleted' 0 { Call-Method (New-Info $of 'deleted') 'Delete' }
    }
    Ask 'A83' $of {
        [void](New-Queue $of 'late' $false)
        Get-ClassAfter $of 'late' 1 { Start-Sleep -Seconds 3 }
    }
    Ask 'A84' $of {
        # Administrators receive from outgoing queues: 1 with 128 is MQ_RECEIVE_ACCESS with MQ_ADMIN_ACCESS.
        $name = 'DIRECT=OS:wcheck.invalid\private$\nowhere'
        $reports = New-Queue $of 'reports' $false
        $message = New-Message $of 'purged on its way'
        Write-Member $message 'Ack' 14
        Write-Member $message 'AdminQueueInfo' $reports
        [void](Call-Method $message 'Send' (Call-Method (New-Named $of $name) 'Open' 2 0))
        [void](Call-Method (Call-Method (New-Named $of $name) 'Open' 129 0) 'Purge')
        'class 0x{0:X4}' -f [int](Read-Member (Receive-First $of 'reports') 'Class')
    }
    Ask 'A85' $of {
        $message = New-Message $of 'wcheck letter'
        Write-Member $message 'Journal' 1
        Write-Member $message 'MaxTimeToReceive' 1
        [void](Call-Method $message 'Send' (Open-Queue $of 'late' 2 0))
        Start-Sleep -Seconds 3
        $letters = Call-Method (New-Named $of 'DIRECT=OS:.\SYSTEM$;DEADLETTER') 'Open' 32 0
        $letter = Call-Method $letters 'PeekCurrent' $none $none 5000
        while ((Read-Member $letter 'Label') -ne 'wcheck letter') {
            $letter = Call-Method $letters 'PeekNext' $none $none 1000
        }
        'class 0x{0:X4}' -f [int](Read-Member $letter 'Class')
    }
}

function Ask-Managing([string]$of) {
    Ask 'A90' $of { 'number ' + (Read-Member (New-Thing $of 'MSMQApplication') 'MSMQVersionMajor') }
    Ask 'A91' $of { 'number ' + (Read-Member (New-Thing $of 'MSMQApplication') 'MSMQVersionMinor') }
    Ask 'A92' $of { Get-YesNo (Read-Member (New-Thing $of 'MSMQApplication') 'IsDsEnabled') }
    Ask 'A93' $of {
        [void](New-Queue $of 'idle' $false)
        $management = New-Thing $of 'MSMQManagement'
        [void](Call-Method $management 'Init' $none ($own + 'idle'))
        'number ' + (Read-Member $management 'MessageCount')
    }
    Ask 'A94' $of {
        $info = New-Queue $of 'kept' $false
        Write-Member $info 'Journal' 1
        [void](Call-Method $info 'Update')
        [void](Send-Body $of 'kept' 'x' $none)
        [void](Receive-First $of 'kept')
        Write-Member $info 'Journal' 0
        [void](Call-Method $info 'Update')
        [void](Open-Queue $of 'kept' 1 0)
        $management = New-Thing $of 'MSMQManagement'
        [void](Call-Method $management 'Init' $none ($own + 'kept'))
        Get-YesNo ((Read-Member $management 'BytesInJournal') -gt 0)
    }
}

function Ask-Objects([string]$of) {
    Ask 'A00' $of { [void](New-Thing $of 'MSMQQueueInfo'); 'ok' }
    [void](New-Thing $of 'MSMQQueueInfo')
    Start-Part ('names, ' + $of) { Ask-Names $of }
    Start-Part ('sharing, ' + $of) { Ask-Sharing $of }
    Start-Part ('reading, ' + $of) { Ask-Reading $of }
    Start-Part ('bodies, ' + $of) { Ask-Bodies $of }
    Start-Part ('transactions, ' + $of) { Ask-Transactions $of }
    Start-Part ('sending, ' + $of) { Ask-Sending $of }
    Start-Part ('reports, ' + $of) { Ask-Reports $of }
    Start-Part ('managing, ' + $of) { Ask-Managing $of }
}
